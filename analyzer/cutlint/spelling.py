"""How the files of one source are written for people, and which files those spellings stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cutlint.checkout import display_path


class Spelling:
    """Called with a path: the path as it is shown, relative to the first of `roots` that it lies below, else whole.

    Files below `passing` are made for this run and gone after it.
    """

    def __init__(self, roots: Sequence[Path], passing: Path | None = None) -> None:
        self._roots = tuple(roots)
        self._passing = passing
        self._shown: dict[str, str] = {}
        self._whole: dict[str, str | None] = {}

    def __call__(self, path: str) -> str:
        shown = self._shown.get(path)
        if shown is None:
            shown = self._shown[path] = display_path(path, self._roots)
            gone = self._passing is not None and Path(path).is_relative_to(self._passing)
            self._whole[shown] = None if gone else display_path(path, ())
        return shown

    def knows(self, shown: str) -> bool:
        """Whether `shown` is how a path of this source was written."""
        return shown in self._whole

    def whole(self, shown: str) -> str | None:
        """The whole path of the file that was written `shown`; None for one that does not outlast the run."""
        return self._whole[shown]
