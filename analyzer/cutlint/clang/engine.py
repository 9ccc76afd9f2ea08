"""The clang engine: footprints as the compiler sees them, without nvcc and without a GPU."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from cutlint.clang import headers, probe
from cutlint.clang.cache import HeaderStore, Results
from cutlint.clang.headers import STUBS, Headers
from cutlint.clang.pool import Pool
from cutlint.clang.records import Answer, Error, Evaluated, Failure, Header, Precompiled, Setup, Sizes
from cutlint.clang.rounds import Batch, settle
from cutlint.errors import CutlintError
from cutlint.fetch import cache_folder
from cutlint.footprint.records import Footprint
from cutlint.launcher import Launcher
from cutlint.records import Checkout

ENGINE = "clang"
_SMALL, _LARGE = (
    44,
    256,
)  # instantiations to a unit. What they share costs as much as dozens of them, but memory 8 MB each
_SAVED_EVERY = 5.0  # seconds between additions to the cache

Progress = Callable[[int, int], None]


def evaluate(
    launcher: Launcher,
    checkout: Checkout,
    items: Sequence[Mapping[str, str]],
    *,
    cuda_include: Path | None = None,
    jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> list[Footprint]:
    """The footprint of each of `items`: macro arguments by the launcher's own parameter names.

    What the compiler refuses has `refused`, in the words of the static_assert, and no size. `cuda_include` is the
    folder of CUDA's headers, if they are not to be looked for; `jobs` the number of worker processes, by default one a
    core. `progress` is told how many are done, of how many. Results are kept in the user's cache.

    Raises:
        CutlintError: when headers, the C++ library or libclang are missing or unusable, with what to do about it.
    """
    found = headers.find(Path(launcher.path).absolute(), checkout, cuda_include)
    run = _Run(launcher, found, checkout.label)
    keys = [run.key(each) for each in items]
    distinct = dict(zip(keys, items, strict=True))
    results = Results(run.folder / "results" / run.content)
    known = results.load()
    missing = {key: each for key, each in distinct.items() if key not in known}
    progress(len(distinct) - len(missing), len(distinct))
    unsaved: dict[str, Footprint] = {}
    saved = time.monotonic()
    try:
        for key, footprint in run.evaluated(missing, jobs or _cores()) if missing else ():
            unsaved[key] = known[key] = footprint
            progress(len(known.keys() & distinct.keys()), len(distinct))
            if time.monotonic() - saved > _SAVED_EVERY:
                results.add(unsaved)
                unsaved, saved = {}, time.monotonic()
    finally:
        if unsaved:
            results.add(unsaved)
    return [known[key] for key in keys]


class _Run:
    """One launcher over one set of headers."""

    def __init__(self, launcher: Launcher, found: Headers, label: str) -> None:
        self.folder = cache_folder() / "clang"
        self._launcher = launcher
        self._headers = found
        self._label = label
        declared = (f"{each.name} {each.declared}" for each in launcher.declared)
        text = "\n".join((launcher.kernel, launcher.static_size or "", *declared, *launcher.statements))
        self.content = _digest(_engine_version(), text, found.content())[:32]

    def key(self, item: Mapping[str, str]) -> str:
        return _digest(*(item[name] for name in self._launcher.parameters))[:32]

    def _likeness(self, item: Mapping[str, str]) -> tuple[str, ...]:
        """What items are sorted by so that neighbours share most of what makes them costly, their mainloop."""
        first = self._launcher.mainloop_parameters
        return tuple(item[name] for name in (*first, *self._launcher.parameters))

    def evaluated(self, items: Mapping[str, Mapping[str, str]], jobs: int) -> Iterator[tuple[str, Footprint]]:
        """The footprints of `items`, by their keys, as they come."""
        fit: dict[str, Mapping[str, str]] = {}
        for key, item in items.items():
            reason = probe.unfit(item)
            if reason is not None:
                yield key, Footprint(ENGINE, refused=reason)
            else:
                fit[key] = item
        keys = sorted(fit, key=lambda key: self._likeness(fit[key]))
        arguments = [fit[key] for key in keys]
        with ExitStack() as stack:
            pool = stack.enter_context(Pool(min(jobs, max(1, len(keys))), Setup(self._headers.options)))
            made = self._precompile(pool, stack) if keys else Precompiled(())
            for number, footprint in self._rounds(pool, made, arguments, jobs):
                yield keys[number], footprint

    def _rounds(
        self, pool: Pool, made: Precompiled, arguments: Sequence[Mapping[str, str]], jobs: int
    ) -> Iterator[tuple[int, Footprint]]:
        pending: dict[Future[Answer], Batch] = {}

        def ask(batch: Batch) -> None:
            items = ((number, arguments[number]) for number in batch)
            unit = probe.unit(self._launcher, made.namespaces, items)
            pending[pool.ask(unit)] = batch

        for batch in _batches(len(arguments), jobs):
            ask(batch)
        while pending:
            ready, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                batch, answer = pending.pop(future), future.result()
                assert isinstance(answer, Evaluated | Failure)  # a unit has no other answer
                settled = settle(batch, answer)
                if settled.failure is not None:
                    raise CutlintError(f"libclang cannot evaluate {self._launcher.name}: {settled.failure}")
                for again in settled.again:
                    ask(again)
                for number, sizes in settled.sizes.items():
                    yield number, _footprint(sizes)
                for number, error in settled.refused.items():
                    yield number, _refusal(error)

    def _precompile(self, pool: Pool, stack: ExitStack) -> Precompiled:
        """Have the pool's workers use the launcher's header precompiled: from the cache, or made now."""
        text = probe.header(self._launcher.path)
        options = self._headers.options
        key = _digest(self.content, text, *options)[:32]
        store = HeaderStore(self.folder / "headers")
        source = store.source(key, text)
        if source is None:  # a cache that cannot be written to
            store = HeaderStore(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cutlint-"))))
            source = store.source(key, text)
        if source is None:
            raise CutlintError(f"neither {self.folder} nor a temporary folder can be written to")
        known = store.get(key)
        if known is None or not self._usable(pool, known[0]):
            known = self._made(pool, store, source, key)
        pool.configure(Setup(options, str(known[0])))
        return known[1]

    def _usable(self, pool: Pool, path: Path) -> bool:
        """Whether libclang takes the precompiled header: it does not when the C library's headers have changed since."""
        pool.configure(Setup(self._headers.options, str(path)))
        answer = pool.ask(probe.empty()).result()
        return isinstance(answer, Evaluated) and not answer.stray

    def _made(self, pool: Pool, store: HeaderStore, source: Path, key: str) -> tuple[Path, Precompiled]:
        pool.configure(Setup(self._headers.options))
        target = store.target(key)
        order = Header(str(source), str(target), self._launcher.path, self._launcher.span[0])
        answer = pool.ask(order).result()
        if isinstance(answer, Precompiled) and answer.missing is None and not answer.errors:
            store.keep(key, target, answer)
            return target, answer
        target.unlink(missing_ok=True)
        if isinstance(answer, Failure):
            raise CutlintError(
                f"the clang engine cannot use libclang: {answer.message}; pip install --force-reinstall libclang==18.1.1"
            )
        assert isinstance(answer, Precompiled)  # a header has no other answer
        if answer.missing is not None:
            raise CutlintError(
                f"the headers of {self._launcher.path} are not complete: {answer.missing}; "
                f"check that {self._label} is a whole checkout with its third-party folders"
            )
        first = answer.errors[0]
        raise CutlintError(f"the headers of {self._launcher.path} do not compile: {first.message} ({first.where})")


def _footprint(sizes: Sizes) -> Footprint:
    known = {name: value for name, value in sizes.values.items() if value != -1}
    m, n = known.get("epilogue_tile_m"), known.get("epilogue_tile_n")
    return Footprint(
        engine=ENGINE,
        total=known["total"],
        mainloop=known.get("mainloop"),
        epilogue=known.get("epilogue"),
        mainloop_tensors=known.get("mainloop_tensors"),
        epilogue_tensors=known.get("epilogue_tensors"),
        stages=known.get("stages", known.get("stages_ab", known.get("kernel_stages"))),
        threads=known.get("threads", known.get("thread_count")),
        epilogue_tile=None if m is None or n is None else (m, n),
        stages_c=known.get("stages_c"),
        stages_d=known.get("stages_d"),
        stages_sf=known.get("stages_sf"),
        align=known["align"],
        regions=sizes.regions,
    )


def _refusal(error: Error) -> Footprint:
    return Footprint(ENGINE, refused=f"{error.message} ({error.where})")


def _batches(count: int, jobs: int) -> list[Batch]:
    """Numbers 0 to `count` in batches, neighbours together: large ones first, smaller ones so that all `jobs` end alike."""
    batches: list[Batch] = []
    start = 0
    while start < count:
        left = count - start
        size = min(max(_SMALL, -(-left // (2 * jobs))), _LARGE, left)
        if left - size < _SMALL // 2 and len(batches) >= jobs:
            size = left
        batches.append(tuple(range(start, start + size)))
        start += size
    return batches


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@cache
def _engine_version() -> str:
    """What decides a result on cutlint's side: this package's files, and libclang."""
    try:
        libclang = importlib.metadata.version("libclang")
    except importlib.metadata.PackageNotFoundError:
        libclang = ""
    digest = hashlib.sha256(libclang.encode())
    for path in sorted((*Path(__file__).parent.glob("*.py"), *STUBS.iterdir())):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
