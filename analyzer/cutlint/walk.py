"""Walking through a source folder, in a fixed order, without leaving it and without getting stuck."""

# Plain strings: a release has 15,000 files, and an object for each would double the time.
# ruff: noqa: PTH110, PTH112, PTH113, PTH118, PTH119

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from cutlint.records import Problem

SKIPPED = frozenset({".git", "node_modules", "__pycache__"})  # folders that are never worth a look


class Search(msgspec.Struct, frozen=True):
    """Which files a walk is after.

    ``suffix`` of their names; ``accepts`` takes such a file's path below the top, with a leading separator;
    ``skips`` takes a folder's name.
    """

    suffix: str
    accepts: Callable[[str], bool]
    skips: Callable[[str], bool] = SKIPPED.__contains__


def files(top: Path, root: Path, search: Search, problems: list[Problem]) -> list[Path]:
    """The files below the folder ``top`` that ``search`` accepts, sorted.

    Links to files count when they stay inside ``root``, which is ``top`` or a folder above it; folders behind
    links are not entered. What could not be read goes to ``problems``; nothing is raised.
    """
    start = str(top)
    found: list[str] = []
    links: list[str] = []
    unread: list[Problem] = []
    pending = [start]
    while pending:  # os.walk recurses on Python 3.10 and 3.11, so a deep tree would end it
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        links.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        if not search.skips(entry.name):
                            pending.append(entry.path)
                    elif _accepted(entry.path, start, search):
                        if entry.is_file(follow_symlinks=False):
                            found.append(entry.path)
                        else:  # opening a pipe or a device could block for ever
                            unread.append(Problem(entry.path, "not a regular file"))
        except OSError as error:
            unread.append(Problem(folder, f"cannot read the folder: {error.strerror}"))
    if links:
        known = {os.path.realpath(file) for file in found}
        for link in sorted(links):
            outcome = _follow(link, start, str(root), search)
            if isinstance(outcome, Problem):
                unread.append(outcome)
            elif outcome is not None and outcome not in known:
                known.add(outcome)
                found.append(link)
    problems.extend(sorted(unread, key=lambda problem: problem.file))
    return [Path(file) for file in sorted(found)]


def _accepted(path: str, start: str, search: Search) -> bool:
    return path.endswith(search.suffix) and search.accepts(path[len(start.rstrip(os.sep)) :])


def _follow(link: str, start: str, root: str, search: Search) -> str | Problem | None:
    """The real path of the file behind ``link``, why it does not count, or None when it is of no interest.

    Folders behind links are never entered: those below ``start`` are found at their own place.
    """
    is_folder = os.path.isdir(link)
    if is_folder and search.skips(os.path.basename(link)):
        return None
    if not _accepted(os.path.join(link, f"any{search.suffix}") if is_folder else link, start, search):
        return None
    target = os.path.realpath(link)
    if is_folder:
        return None if _within(target, start) else Problem(link, "a link to a folder elsewhere; not followed")
    if not os.path.exists(link):
        return Problem(link, "a broken link")
    if not _within(target, root):
        return Problem(link, "a link to outside of the source; not followed")
    return target if os.path.isfile(target) else Problem(link, "not a regular file")


def _within(target: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return target == real or target.startswith(real.rstrip(os.sep) + os.sep)
