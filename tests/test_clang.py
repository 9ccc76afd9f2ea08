"""The clang engine on a small header tree (fixtures/clang), whose expected offsets come from g++, and on a real release."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from conftest import FIXTURES, table

from cutlint import checkout, launchers
from cutlint.clang import cache, engine, headers, probe
from cutlint.clang.pool import Pool
from cutlint.clang.records import Answer, Error, Evaluated, Failure, Field, Order, Setup, Sizes, Unit
from cutlint.clang.regions import regions
from cutlint.clang.rounds import settle
from cutlint.errors import CutlintError
from cutlint.footprint.layout import Region
from cutlint.footprint.records import Footprint
from cutlint.headers import Headers
from cutlint.launcher import Launcher
from cutlint.records import Checkout

SMALL = FIXTURES / "clang"
CUDA = SMALL / "cuda"
K16, STAGES = "K must be a multiple of 16", "Specialization requires Stages set to value 2 or more."


def open_small(root: Path = SMALL) -> tuple[Launcher, Checkout]:
    found, problems = checkout.find(root, str(root))
    assert problems == []
    read, problems = launchers.read(found.launchers[0], Headers(found.launchers[0], found.root))
    assert problems == []
    return read[0], found


def small(arch: str, m: int, n: int, k: int, bias: bool = False) -> dict[str, str]:
    values = (arch, "SafeByte", str(m), str(n), str(k), str(bias).lower())
    return dict(zip(("ArchTag_", "Element_", "TILE_M_", "TILE_N_", "TILE_K_", "BIAS_"), values, strict=True))


def evaluate(items: Sequence[Mapping[str, str]], root: Path = SMALL, cuda: Path | None = CUDA) -> list[Footprint]:
    return engine.evaluate(*open_small(root), items, cuda_include=cuda, jobs=1)


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for the tests that do not look at it, so that the header is precompiled once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "cache_folder", lambda: folder)
        yield folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SMALL, tmp_path / "copy"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """What libclang is asked from now on."""
    orders: list[Order] = []
    ask = Pool.ask
    monkeypatch.setattr(Pool, "ask", lambda self, order: (orders.append(order), ask(self, order))[1])
    return orders


# -- figures and regions


@pytest.mark.usefixtures("shared_cache")
def test_figures_are_the_compilers() -> None:
    one, wide = evaluate([small("Sm90", 64, 32, 64), small("Sm120", 32, 16, 32)])
    assert (one.engine, one.refused, one.total, one.align) == ("clang", None, 21_376, 128)
    assert (one.mainloop, one.mainloop_tensors, one.epilogue, one.epilogue_tensors) == (18_688, 18_560, 1_280, 1_152)
    assert (one.stages, one.stages_c, one.stages_d, one.stages_sf) == (3, 2, 1, None)
    assert (one.threads, one.epilogue_tile) == (384, (32, 16))
    assert (wide.total, wide.mainloop, wide.stages) == (10_624, 7_936, 5)


def as_function_template(root: Path) -> tuple[Launcher, Checkout]:
    """The launcher of the copy `root` as a function template, through another one that fills in an argument."""
    path = next(root.rglob("small_launcher.inl"))
    text = path.read_text()
    start, end = text.index("#define INSTANTIATE_SMALL"), text.index("}  // namespace kernels")
    body = text[start:end].replace("\\\n", "\n")
    body = body[body.index("{") : body.rindex("}") + 1].replace("cutlass::arch::ArchTag_", "Arch_")
    head = "template <class Arch_, class Element_, int TILE_M_, int TILE_N_, int TILE_K_, bool BIAS_>"
    inner = f"{head}\nvoid chosen(int* workspace) {body}\n"
    outer = f"{head.replace(', bool BIAS_', '')}\nvoid plain(int* workspace) {{\n  chosen<Arch_, Element_, TILE_M_, TILE_N_, TILE_K_, false>"
    path.write_text(f"{text[:start]}{inner}{outer}(workspace);\n}}\n{text[end:]}")
    found, _ = checkout.find(root, str(root))
    read, problems = launchers.read(found.launchers[0], Headers(found.launchers[0], found.root))
    assert problems == []
    return next(each for each in read if each.name == "plain"), found


@pytest.mark.usefixtures("own_cache")
def test_a_function_template_gives_the_same_as_a_macro(copy: Path) -> None:
    tiles = [(64, 32, 64), (128, 64, 32), (64, 512, 64)]
    macro = evaluate([small("Sm90", *tile) for tile in tiles])
    launcher, found = as_function_template(copy)
    assert launcher.parameters == ("Arch_", "Element_", "TILE_M_", "TILE_N_", "TILE_K_")
    names = ("TILE_M_", "TILE_N_", "TILE_K_")
    items = [
        {"Arch_": "cutlass::arch::Sm90", "Element_": "SafeByte", **dict(zip(names, map(str, tile), strict=True))}
        for tile in tiles
    ]
    function = engine.evaluate(launcher, found, items, cuda_include=CUDA, jobs=1)
    assert function[:2] == macro[:2]
    assert "at most 256 wide" in (function[2].refused or "")
    assert "at most 256 wide" in (macro[2].refused or "")


@pytest.mark.usefixtures("shared_cache")
def test_regions_cover_all_with_the_models_names() -> None:
    plain, biased = evaluate([small("Sm90", 64, 32, 64), small("Sm90", 64, 32, 64, bias=True)])
    maps = [("mainloop.tensor maps A, B", 256), ("epilogue.tensor map C", 128), ("epilogue.tensor maps D", 256)]
    assert [(each.name, each.size) for each in biased.regions] == [
        ("mainloop.A", 12_288), ("mainloop.B", 6_144), ("mainloop.SFA", 32), ("padding", 96),
        ("epilogue.C/D", 1_024), ("epilogue.row broadcast", 32), ("padding", 96),
        ("mainloop barriers", 48), ("epilogue.load barriers", 32), ("tensor memory barrier", 8), ("padding", 8),
        ("scheduler responses", 48), ("padding", 112), *maps, *maps, ("something", 4), ("padding", 124),
    ]  # fmt: skip
    kinds = "A B SFA padding C/D fusion barriers scheduler tensormaps other"
    assert " ".join(dict.fromkeys(each.kind for each in biased.regions)) == kinds
    for footprint in (plain, biased):
        end = 0
        for region in footprint.regions:
            assert region.offset == end
            end += region.size
        assert end == footprint.total
    assert not any(each.kind == "fusion" for each in plain.regions)  # an empty class is no data


def test_what_no_name_tells_is_shown_as_other() -> None:
    part = Field("part", "float", 8, 4)
    either = Field("either", "union", 16, 8, union=True, fields=(Field("a", "int", 16, 4), Field("b", "long", 16, 8)))
    storage = Field("", "Storage", 0, 32, fields=(Field("", "base classes", 0, 8), part, either))
    assert regions(storage) == (
        Region("storage", "other", 0, 8),
        Region("part", "other", 8, 4),
        Region("padding", "padding", 12, 4),
        Region("a/b", "other", 16, 8),
        Region("padding", "padding", 24, 8),
    )


# -- what the compiler refuses


@pytest.mark.usefixtures("shared_cache")
def test_refusals_have_the_asserts_own_words_and_no_size() -> None:
    few, odd, wide, fine, unfit = evaluate(
        [
            small("Sm120", 128, 128, 64),
            small("Sm90", 64, 32, 40),
            small("Sm90", 64, 512, 64),
            small("Sm90", 64, 32, 64),
            {**small("Sm90", 64, 32, 64), "BIAS_": "true; } int x = {"},
        ]
    )
    assert few.refused == f"{STAGES} (cutlass/cutlass.h:144)"
    assert odd.refused is not None
    assert odd.refused.startswith(K16)
    assert wide.refused == "the launcher's tiles are at most 256 wide (the launcher)"
    assert unfit.refused == "the argument 'true; } int x = {' for BIAS_ is neither a type nor a value"
    assert all(each.total is None and each.regions == () for each in (few, odd, wide, unfit))
    assert fine.total == 21_376


@pytest.mark.parametrize(("k", "reason"), [(40, K16), (48, "no type named 'Type' in 'cutlass::detail::Atom<48>'")])
@pytest.mark.usefixtures("own_cache")
def test_who_shares_a_failing_specialization_is_refused_as_well(k: int, reason: str) -> None:
    failing = [small("Sm90", m, n, k) for m in (32, 64) for n in (16, 32)]
    fine = [small("Sm90", m, n, 64) for m in (32, 64) for n in (16, 32)]
    mixed = [each for pair in zip(failing, fine, strict=True) for each in pair]
    together = evaluate(mixed)
    assert all(each.refused is not None and each.refused.startswith(reason) for each in together[::2])
    assert [each.total for each in together[1::2]] == [21_376, 19_328, 18_304, 21_376]  # g++


def test_a_size_counts_only_from_a_unit_without_errors() -> None:
    sizes = {index: Sizes({"total": 1, "align": 1}, ()) for index in range(3)}
    asserted, other = Error("no", "a.h:1", asserted=True), Error("what?", "a.h:2")
    assert settle((7, 8, 9), Evaluated({}, (), sizes)).sizes.keys() == {7, 8, 9}
    one = settle((7, 8, 9), Evaluated({1: (other, asserted)}, (), sizes))
    assert (one.sizes, one.refused, one.again) == ({}, {8: asserted}, ((7, 9),))
    two = settle((7, 8, 9), Evaluated({0: (asserted,), 1: (other,)}, (), {}))
    assert (two.refused, two.again) == ({7: asserted}, ((9,), (8,)))
    stray = settle((7, 8, 9), Evaluated({}, (other,), sizes))
    assert (stray.sizes, stray.refused, stray.again) == ({}, {}, ((7,), (8, 9)))
    assert settle((7,), Evaluated({}, (other,), sizes)).refused == {7: other}
    assert settle((7, 8), Failure("crashed")).again == ((7,), (8,))
    assert settle((7,), Failure("crashed")).failure == "crashed"


def test_probe_text_is_the_launchers() -> None:
    read, _ = open_small()
    assert read.kernel == "SmallKernel"
    assert "int const widest = kWidest;" in read.statements
    assert not any("given" in each for each in read.statements)  # known only when the program runs
    unit = probe.unit(read, ("a", "b"), [(3, small("Sm90", 64, 32, 16))])
    lines = unit.text.splitlines()
    assert lines[0] == "namespace a { namespace b {"
    assert unit.spans == ((2, len(lines) - 1),)
    assert "using Arch = cutlass::arch::Sm90;" in lines
    assert "using Tile = cute::Shape<64, 32, 16>;" in lines
    assert probe.substituted('static_assert(N > 1, "N ## x") , X##N', {"N": "2"}).endswith(", X2")


# -- the cache


def test_a_second_run_does_without_libclang(own_cache: Path, asked: list[Order]) -> None:
    items = [small("Sm90", 64, 32, 64), small("Sm120", 128, 128, 64)]
    first = evaluate(items)
    assert asked
    asked.clear()
    assert evaluate(list(reversed(items))) == list(reversed(first))
    assert asked == []


def test_a_copy_of_the_checkout_is_answered_from_the_cache(own_cache: Path, copy: Path, asked: list[Order]) -> None:
    first = evaluate([small("Sm90", 64, 32, 64)])
    asked.clear()
    assert evaluate([small("Sm90", 64, 32, 64)], copy) == first
    assert asked == []


def test_a_changed_header_is_noticed(own_cache: Path, copy: Path) -> None:
    assert evaluate([small("Sm90", 64, 32, 64)], copy)[0].threads == 384
    header = copy / "3rdparty/cutlass/include/cutlass/cutlass.h"
    stat = header.stat()
    header.write_text(header.read_text().replace("= 384;", "= 256;"))
    os.utime(header, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time
    assert evaluate([small("Sm90", 64, 32, 64)], copy)[0].threads == 256


def test_a_changed_launcher_is_noticed(own_cache: Path, copy: Path) -> None:
    assert evaluate([small("Sm90", 64, 32, 64)], copy)[0].stages == 3
    path = next(copy.rglob("small_launcher.inl"))
    path.write_text(path.read_text().replace("sizeof(Epilogue::SharedStorage)", "8 * sizeof(Epilogue::SharedStorage)"))
    assert evaluate([small("Sm90", 64, 32, 64)], copy)[0].refused is not None  # one stage is left


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1] + b"x"]
)
def test_damage_costs_time_only(own_cache: Path, damage: Callable[[bytes], bytes], asked: list[Order]) -> None:
    first = evaluate([small("Sm90", 64, 32, 64)])
    for path in own_cache.rglob("*"):
        if path.is_file():
            path.write_bytes(damage(path.read_bytes()))
    asked.clear()
    assert evaluate([small("Sm90", 64, 32, 64)]) == first
    assert asked


def test_only_what_is_new_is_evaluated(own_cache: Path, asked: list[Order]) -> None:
    evaluate([small("Sm90", 64, 32, 64)])
    asked.clear()
    both = evaluate([small("Sm90", 64, 32, 64), small("Sm90", 32, 16, 64)])
    assert [each.refused for each in both] == [None, None]
    units = [each.text for each in asked if isinstance(each, Unit)]
    assert any("Shape<32, 16, 64>" in each for each in units)
    assert not any("Shape<64, 32, 64>" in each for each in units)


def test_a_cache_that_cannot_be_written_to_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path / "file")
    assert evaluate([small("Sm90", 64, 32, 64)])[0].total == 21_376


def test_entries_of_several_runs_are_put_together(tmp_path: Path) -> None:
    results = cache.Results(tmp_path)
    results.add({"a": Footprint("clang", total=1)})
    cache.Results(tmp_path).add({"b": Footprint("clang", refused="no")})
    (tmp_path / "unfinished.msgpack").write_bytes(b"half of somethi")
    assert results.load() == {"a": Footprint("clang", total=1), "b": Footprint("clang", refused="no")}


# -- what is missing


def test_no_cuda_headers(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_wheel_folders", list)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(CutlintError, match=r"pip install 'cutlint\[clang\]', or name their folder with --cuda-include"):
        evaluate([small("Sm90", 64, 32, 64)], cuda=None)
    with pytest.raises(CutlintError, match=r"no cuda_runtime\.h"):
        evaluate([small("Sm90", 64, 32, 64)], cuda=SMALL)


def test_incomplete_cuda_headers_are_named(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CUDA, tmp_path / "cuda"))
    assert headers.cuda_folders(folder) == ((folder,), 13_000)
    shutil.rmtree(folder / "crt")
    with pytest.raises(CutlintError, match="nvidia-cuda-crt"):
        headers.cuda_folders(folder)
    (folder / "crt").mkdir()
    (folder / "crt/host_defines.h").touch()
    (folder / "cuda_fp4.h").unlink()
    with pytest.raises(CutlintError, match=r"CUDA 12\.8 or newer"):
        headers.cuda_folders(folder)


def test_cuda_home_goes_before_the_wheels(tmp_path: Path) -> None:
    shutil.copytree(CUDA, tmp_path / "include")
    assert headers.cuda_folders(environment={"CUDA_HOME": str(tmp_path)}) == ((tmp_path / "include",), 13_000)


def test_the_header_wheels_alone_suffice(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No toolkit: neither CUDA_HOME nor nvcc, only g++ on the path and the wheels of the extra ``clang``."""
    gcc = shutil.which("g++")
    assert gcc is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/g++").symlink_to(gcc)
    for name in ("CUDA_HOME", "CUDA_PATH", "CPATH", "CPLUS_INCLUDE_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert shutil.which("nvcc") is None
    folders, version = headers.cuda_folders()
    assert version >= 12_080
    assert all("nvidia" in each.parts for each in folders)
    assert evaluate([small("Sm90", 64, 32, 64)], cuda=None)[0].total == 21_376


def test_no_cpp_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CutlintError, match="install g\\+\\+"):
        headers.library_folders(tmp_path)


def test_a_cpp_library_without_gcc_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    own = tmp_path / "usr/lib/gcc/x86_64-linux-gnu/12/include"
    for folder in ("usr/include/c++/9", "usr/include/c++/12", "usr/include/x86_64-linux-gnu/c++/12"):
        (tmp_path / folder).mkdir(parents=True)
    own.mkdir(parents=True)
    (own / "stddef.h").touch()
    (tmp_path / "usr/include/c++/12/vector").touch()
    folders, version = headers.library_folders(tmp_path)
    assert version == "libstdc++ 12"
    assert [str(each.relative_to(tmp_path / "usr")) for each in folders] == [
        "include/c++/12", "include/x86_64-linux-gnu/c++/12", "lib/gcc/x86_64-linux-gnu/12/include",
        "include/x86_64-linux-gnu", "include",
    ]  # fmt: skip


def test_a_missing_header_is_named(own_cache: Path, copy: Path) -> None:
    next(copy.rglob("small_types.h")).unlink()
    with pytest.raises(CutlintError, match=r"'small_types\.h' file not found.*whole checkout"):
        evaluate([small("Sm90", 64, 32, 64)], copy)


def test_errors_in_device_functions_do_not_matter_those_in_classes_do(own_cache: Path, copy: Path) -> None:
    header = copy / "3rdparty/cutlass/include/cutlass/version.h"
    text = header.read_text()
    header.write_text(text + "inline void device(unknown_t x) { __nonsense(x); }\n")
    assert evaluate([small("Sm90", 64, 32, 64)], copy)[0].total == 21_376
    header.write_text(text + "struct Broken { unknown_t x; };\n")
    with pytest.raises(CutlintError, match="do not compile: unknown type name 'unknown_t'"):
        evaluate([small("Sm90", 64, 32, 64)], copy)


def test_no_libclang(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clang").mkdir()
    (tmp_path / "clang/__init__.py").write_text("raise ImportError('no such library')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CutlintError, match=r"cannot use libclang: .*no such library.*pip install"):
        evaluate([small("Sm90", 64, 32, 64)])


def test_a_worker_that_ends_is_replaced() -> None:
    with Pool(1, Setup(())) as pool:
        empty = probe.empty()
        assert isinstance(pool.ask(empty).result(), Evaluated)
        pool._workers[0]._process.kill()
        answer: Answer = pool.ask(empty).result()
        assert isinstance(answer, Evaluated)
        assert len(pool._workers) == 2


# -- a real release

FIGURES = {
    "smem": "total", "epilogue": "epilogue", "mainloop": "mainloop", "mainloop_tensors": "mainloop_tensors",
    "epilogue_tensors": "epilogue_tensors", "stages": "stages", "threads": "threads", "stages_c": "stages_c",
    "stages_d": "stages_d", "stages_sf": "stages_sf",
}  # fmt: skip


@pytest.mark.download
def test_every_sm120_row_of_a_release(own_cache: Path) -> None:
    from cutlint.fetch import fetch

    found, _ = checkout.find(fetch("flashinfer-python==0.7.4"), "flashinfer-python==0.7.4")
    every = [each for path in found.launchers for each in launchers.read(path, Headers(path, found.root))[0]]
    read = next(each for each in every if each.name == "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM")
    expected = list(table("flashinfer-0.7.4-sm120.csv"))
    items = [dict(zip(read.parameters, columns.values(), strict=True)) for columns, _ in expected]
    footprints = engine.evaluate(read, found, items)
    assert len(footprints) == 88
    for footprint, (_, row) in zip(footprints, expected, strict=True):
        assert footprint.refused is None
        for column, name in FIGURES.items():
            assert getattr(footprint, name) == (int(row[column]) if row[column] else None), (column, row)
        assert footprint.epilogue_tile == (int(row["epi_tile_m"]), int(row["epi_tile_n"]))
        assert sum(each.size for each in footprint.regions) == footprint.total
