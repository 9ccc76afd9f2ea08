"""Where the data folders ``rules`` and ``reports`` are: in the wheel beside this module, in a source tree at the top."""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder `name` (``rules`` or ``reports``) that came with this cutlint."""
    here = Path(__file__).resolve().parent
    installed = here / name
    return installed if installed.is_dir() else here.parent.parent / name
