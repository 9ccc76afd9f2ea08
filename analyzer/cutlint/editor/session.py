"""What is known of the files that an editor has open: analysed by the stages of a normal run, over the editor's own text.

Every generated file is analysed by itself, so what is said of it does not depend on what else is open. What a run finds by
comparing files (tactics without an instantiation, the same instantiation in two files) is left to `cutlint check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from cutlint import settings as setting
from cutlint.analysis import EMPTY, Analysis, Analyzed, Prepared, analyze, prepare
from cutlint.checkout import is_generated
from cutlint.records import Checkout, Finding
from cutlint.run import Standard, judge, standard_of
from cutlint.sources import Request, Source, lender
from cutlint.spelling import Spelling

_OF_A_FILE = ("instantiation", "problem")
_OF_A_LAUNCHER = ("launcher", "problem")


class Options(msgspec.Struct, frozen=True):
    """What the command line says, as for `cutlint check`."""

    checkout: str | None = None
    rules: tuple[Path, ...] = ()
    targets: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True):
    """One open file, analysed. `path` is a generated file or a launcher of the checkout `base`; `launcher` says which."""

    path: Path
    launcher: bool
    analysis: Analysis
    paths: Spelling
    request: Request
    standard: Standard

    @property
    def instantiations(self) -> tuple[Analyzed, ...]:
        return self.analysis.instantiations


class Session:
    """Keeps what was read of checkouts until `forget`, and of each file the last analysis. Not for use from two threads."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._bases: dict[tuple[Path, Path], Checkout] = {}
        self._prepared: dict[Path, tuple[object, Prepared]] = {}
        self._seen: dict[Path, tuple[object, Seen | None]] = {}

    def forget(self) -> None:
        """Files have changed on the disk: read them again."""
        self._bases.clear()
        self._prepared.clear()
        self._seen.clear()

    def look(self, path: Path, texts: Mapping[Path, bytes], cwd: Path | None) -> Seen | None:
        """The file `path`, analysed with `texts` (of all open files, by path) in place of what is on the disk; None when it
        is neither a generated file nor a launcher. `cwd` is the editor's folder around it, if any.

        Raises:
            CutlintError: when the settings, the rules or the checkout named make no sense.
        """
        folder = cwd or path.parent
        standard = self._standard(folder)
        request = Request(
            sources=(str(path),), checkout=self._options.checkout, regions=True, cwd=folder, texts=dict(texts)
        )
        base = self._base(path, request)
        prepared = self._prepare(base, texts)
        path = path.resolve() if path.resolve() in base.launchers else path
        key = (texts.get(path), prepared, folder, standard.configured, standard.rules)
        before = self._seen.get(path)
        if before is None or before[0] != key:
            before = self._seen[path] = (key, _look(path, base, prepared, request, standard))
        return before[1]

    def _standard(self, folder: Path) -> Standard:
        found = setting.find(folder)
        if self._options.targets:
            settings = msgspec.structs.replace(found.settings, target=self._options.targets)
            found = msgspec.structs.replace(found, settings=settings)
        return standard_of(found, self._options.rules)

    def _base(self, path: Path, request: Request) -> Checkout:
        key = (path.parent, request.cwd)
        if key not in self._bases:
            apart = Checkout(label=path.name, root=path.parent, generated=(path,))
            found = lender(apart, request)
            self._bases[key] = apart if found is None else found[0]
        return self._bases[key]

    def _prepare(self, base: Checkout, texts: Mapping[Path, bytes]) -> Prepared:
        """The launchers of `base`, read again when one of them or any open file that is not generated has changed."""
        others = {path: text for path, text in texts.items() if path.suffix != ".cu"}
        key = (base, others, tuple(_state(path) for path in base.launchers))
        kept = self._prepared.get(base.root)
        if kept is None or kept[0] != key:
            kept = self._prepared[base.root] = (key, prepare(base, others))
        return kept[1]


def findings(seen: Seen) -> list[Finding]:
    """What a run finds in this file and by this file alone, the suppressed left out."""
    scopes = _OF_A_LAUNCHER if seen.launcher else _OF_A_FILE
    rules = tuple(rule for rule in seen.standard.rules if rule.scope in scopes)
    standard = msgspec.structs.replace(seen.standard, rules=rules)
    found = judge([(seen.analysis, seen.paths)], standard, seen.request)
    return [each for each in found if each.suppressed is None and seen.paths(str(seen.path)) == each.file]


def _look(path: Path, base: Checkout, prepared: Prepared, request: Request, standard: Standard) -> Seen | None:
    paths = Spelling((request.cwd,))
    launcher = path in base.launchers
    if not launcher and path.suffix != ".cu":
        return None
    found = Checkout(label=path.name, root=path.parent, generated=() if launcher else (path,))
    analysis = analyze(Source(found, base, (), paths), request, prepared=prepared)
    if not launcher and not _is_generated(path, analysis, prepared):
        return None
    return Seen(path, launcher, analysis, paths, request, standard)


def _is_generated(path: Path, analysis: Analysis, prepared: Prepared) -> bool:
    """Whether a .cu file is one of those that generators write, by its name or by what it instantiates; other CUDA code may
    instantiate templates of its own."""
    names = {each.instantiation.name for each in analysis.instantiations}
    known = any(name in prepared.launchers or name.startswith("INSTANTIATE_") for name in names)
    unread = any(each.file == str(path) and each.message != EMPTY for each in analysis.problems)
    return known or is_generated(path) or (unread and not names)


def _state(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
