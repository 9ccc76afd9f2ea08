"""Reading TOML, on Python 3.10 too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cutlint.errors import CutlintError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        CutlintError: when it cannot be read or is not TOML, with the place.
    """
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return content
    except OSError as error:
        raise CutlintError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CutlintError(f"{path} is not valid TOML: {error}") from None
