"""Sources: what is recognised, what is collected, and what bad folders do."""

from __future__ import annotations

import inspect
import os
import sys
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cutlint import checkout
from cutlint.errors import CutlintError

KERNELS = "tensorrt_llm/kernels/cutlass_kernels"
LAUNCHER = f"{KERNELS}/moe_gemm/launchers/moe.inl"


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def git_checkout(root: Path, generator: str = "gemm/cutlass") -> Path:
    touch(
        root,
        f"csrc/nv_internal/{LAUNCHER}",
        f"csrc/nv_internal/{KERNELS}/moe_gemm/not_a_launcher.inl",
        "csrc/some_kernel.cu",
        "3rdparty/cutlass/include/cutlass/version.h",
        "3rdparty/cutlass/examples/x.generated.cu",
        f"flashinfer/jit/{generator}/generate_kernels.py",
    )
    return root


def package(parent: Path) -> Path:
    touch(
        parent,
        f"flashinfer/data/csrc/nv_internal/{LAUNCHER}",
        "flashinfer/data/csrc/generated/unrelated.cu",
        "flashinfer/data/cutlass/include/cutlass/version.h",
        "flashinfer/jit/gemm/cutlass/generate_kernels.py",
    )
    return parent / "flashinfer"


@pytest.mark.parametrize("generator", ["gemm/cutlass", "cutlass_gemm"])
def test_git_checkout(tmp_path: Path, generator: str) -> None:
    root = git_checkout(tmp_path / "repo", generator)
    found, problems = checkout.find(root, "as typed")
    assert problems == []
    assert found.label == "as typed"
    assert found.root == root
    assert found.launchers == (root / "csrc/nv_internal" / LAUNCHER,)
    assert found.cutlass == root / "3rdparty/cutlass/include"
    assert found.generator == root / "flashinfer/jit" / generator / "generate_kernels.py"
    assert found.generated == ()  # neither ordinary kernels nor CUTLASS's examples


def test_generated_files_of_a_checkout(tmp_path: Path) -> None:
    root = git_checkout(tmp_path / "repo")
    names = ["build/b.generated.cu", "csrc/nv_internal/cutlass_instantiations/120/a.cu", "z.generated.cu"]
    touch(root, *names, ".git/no.generated.cu", ".venv/no.generated.cu", "csrc/generated/other.cu")
    found, _ = checkout.find(root, "repo")
    assert found.generated == tuple(root / name for name in names)


def test_package_folder_and_its_parent(tmp_path: Path) -> None:
    folder = package(tmp_path)
    for source in (folder, tmp_path):
        found, problems = checkout.find(source, "package")
        assert problems == []
        assert found.root == folder  # never its parent, which may be all of site-packages
        assert found.launchers == (folder / "data/csrc/nv_internal" / LAUNCHER,)
        assert found.cutlass == folder / "data/cutlass/include"
        assert found.generator == folder / "jit/gemm/cutlass/generate_kernels.py"
        assert found.generated == ()


def test_package_folder_of_an_editable_install(tmp_path: Path) -> None:
    root = git_checkout(tmp_path / "repo")
    (root / "flashinfer/data").mkdir()
    (root / "flashinfer/data/csrc").symlink_to(root / "csrc")
    found, problems = checkout.find(root / "flashinfer", "flashinfer")
    assert (found.root, problems) == (root, [])
    assert found.launchers == (root / "csrc/nv_internal" / LAUNCHER,)


@pytest.mark.parametrize("cutlass", ["3rdparty/cutlass/include", "cpp/build/_deps/cutlass-src/include"])
def test_tensorrt_llm(tmp_path: Path, cutlass: str) -> None:
    written = f"cpp/build/{KERNELS}/cutlass_instantiations/gemm_grouped/120/a.generated.cu"
    touch(tmp_path, f"cpp/{LAUNCHER}", f"{cutlass}/cutlass/version.h", written)
    found, problems = checkout.find(tmp_path, "TensorRT-LLM")
    assert problems == []
    assert found.launchers == (tmp_path / "cpp" / LAUNCHER,)
    assert found.cutlass == tmp_path / cutlass
    assert found.generated == (tmp_path / written,)


def test_what_a_checkout_lacks_is_said(tmp_path: Path) -> None:
    (tmp_path / "csrc/nv_internal" / KERNELS).mkdir(parents=True)
    found, problems = checkout.find(tmp_path, "repo")
    assert (found.launchers, found.cutlass, found.generator) == ((), None, None)
    assert [Path(problem.file).relative_to(tmp_path).parts[0] for problem in problems] == ["csrc", "3rdparty"]
    assert "git submodule update" in problems[1].message


def test_folder_of_generated_files(tmp_path: Path) -> None:
    names = ["cutlass/a.cu", "generated/cutlass_instantiations/120/b.generated.cu", "z.cu"]
    touch(tmp_path, *names, "readme.txt", ".git/no.cu")
    found, problems = checkout.find(tmp_path, "cache")
    assert problems == []
    assert found.generated == tuple(tmp_path / name for name in names)
    assert (found.launchers, found.cutlass, found.generator) == ((), None, None)


def test_generated_files_inside_a_checkout_are_a_folder(tmp_path: Path) -> None:
    root = git_checkout(tmp_path / "repo")
    touch(root, "out/a.cu")
    found, _ = checkout.find(root / "out", "out")
    assert (found.root, found.launchers) == (root / "out", ())
    assert found.generated == (root / "out/a.cu",)


def test_one_file(tmp_path: Path) -> None:
    touch(tmp_path, "a.cu", "b.cu")
    found, problems = checkout.find(tmp_path / "a.cu", "a.cu")
    assert (found.root, found.generated, problems) == (tmp_path, (tmp_path / "a.cu",), [])


def test_relative_source_keeps_its_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "sub/a.cu")
    monkeypatch.chdir(tmp_path)
    assert checkout.find(Path(), ".")[0].generated == (Path("sub/a.cu"),)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such file"),
        ("empty", "nothing to check"),
        ("a.txt", "not a .cu"),
        ("x\0y", "no such file"),
    ],
)
def test_nothing_to_check(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    touch(tmp_path, "a.txt")
    with pytest.raises(CutlintError, match=message):
        checkout.find(tmp_path / name, name)


def test_folder_without_files_inside_a_checkout_names_the_checkout(tmp_path: Path) -> None:
    root = git_checkout(tmp_path / "repo")
    with pytest.raises(CutlintError, match="lies in the checkout") as error:
        checkout.find(root / "flashinfer/jit", "jit")
    assert str(root) in str(error.value)


def test_links(tmp_path: Path) -> None:
    source = tmp_path / "source"
    touch(tmp_path, "outside/secret.cu", "source/real.cu", "source/other.txt")
    (source / "loop").symlink_to(source)
    (source / "self.cu").symlink_to(source / "self.cu")
    (source / "broken.cu").symlink_to(source / "nowhere")
    (source / "again.cu").symlink_to(source / "real.cu")  # the same file: once is enough
    (source / "alias.cu").symlink_to(source / "other.txt")
    (source / "out.cu").symlink_to(tmp_path / "outside/secret.cu")
    (source / "outdir").symlink_to(tmp_path / "outside")
    found, problems = checkout.find(source, "source")
    assert found.generated == (source / "alias.cu", source / "real.cu")
    assert {Path(problem.file).name: problem.message for problem in problems} == {
        "self.cu": "a broken link",
        "broken.cu": "a broken link",
        "out.cu": "a link to outside of the source; not followed",
        "outdir": "a link to a folder elsewhere; not followed",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    touch(tmp_path, "a.cu")
    os.mkfifo(tmp_path / "b.cu")
    found, problems = checkout.find(tmp_path, "folder")
    assert found.generated == (tmp_path / "a.cu",)
    assert [(problem.file, problem.message) for problem in problems] == [(str(tmp_path / "b.cu"), "not a regular file")]


def test_an_unreadable_folder_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.cu", "locked/b.cu")
    real = os.scandir

    def scandir(folder: str) -> object:  # permissions do not stop root, who may run the tests
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    found, problems = checkout.find(tmp_path, "folder")
    assert found.generated == (tmp_path / "a.cu",)
    assert [problem.file for problem in problems] == [str(tmp_path / "locked")]
    assert "Permission denied" in problems[0].message
    with pytest.raises(CutlintError, match="Permission denied"):
        checkout.find(tmp_path / "locked", "locked")


def test_a_folder_deeper_than_the_recursion_limit(tmp_path: Path) -> None:
    touch(tmp_path, "a.cu", "d/" * 200 + "b.cu")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        found, problems = checkout.find(tmp_path, "deep")
    finally:
        sys.setrecursionlimit(limit)
    assert [path.name for path in found.generated] == ["a.cu", "b.cu"]
    assert problems == []


def test_enclosing(tmp_path: Path) -> None:
    root = git_checkout(tmp_path / "repo")
    assert checkout.enclosing(root) == root
    assert checkout.enclosing(root / "csrc/nv_internal") == root
    assert checkout.enclosing(root / "flashinfer/jit/../jit") == root
    assert checkout.enclosing(tmp_path) is None


def test_installed_is_found_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout.installed() is None
    folder = package(tmp_path)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert checkout.installed() == folder


def test_default_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = git_checkout(tmp_path / "repo")
    with pytest.raises(CutlintError, match=r"flashinfer-python==0\.7\.4"):
        checkout.default_source(tmp_path)
    folder = package(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert checkout.default_source(tmp_path) == folder
    assert checkout.default_source(root / "csrc") == root
    assert checkout.resolve(None, cwd=root / "csrc") == root


def test_resolve_prefers_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checkout.resolve("flashinfer-python==0.7.4") == Requirement("flashinfer-python==0.7.4")
    touch(tmp_path, "flashinfer-python==0.7.4/a.cu")
    assert checkout.resolve("flashinfer-python==0.7.4") == Path("flashinfer-python==0.7.4")


@pytest.mark.parametrize(
    "text", ["flashinfer_python==0.7.4", "FlashInfer-Python >= 0.6, <0.7", "flashinfer-python~=0.7.0"]
)
def test_requirements(text: str) -> None:
    assert checkout.resolve(text) == Requirement(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no/such/folder",
        "x\0y",
        "x" * 5000,
        "flashinfer-python",
        "numpy==2.0",
        "flashinfer-python==0.7.4 --index-url http://elsewhere",
        "flashinfer-python @ https://example.org/x.whl",
        "flashinfer-python==0.7.4; python_version < '3'",
    ],
)
def test_neither_path_nor_release(text: str) -> None:
    with pytest.raises(
        CutlintError, match=r"no such file or folder: .*; a release is written flashinfer-python==0\.7\.4"
    ):
        checkout.resolve(text)


@pytest.mark.download
def test_a_real_release(release: Path) -> None:
    start = time.perf_counter()
    found, problems = checkout.find(release, "release")
    assert time.perf_counter() - start < 1  # seconds; generous, it is a folder walk
    assert problems == []
    assert [path.name for path in found.launchers] == [
        "fpA_intB_launcher_sm90.inl",
        "fused_moe_gemm_launcher_sm80.inl",
        "moe_gemm_tma_ws_launcher.inl",
        "moe_gemm_tma_ws_mixed_input_launcher.inl",
    ]
    assert found.cutlass is not None
    assert found.generated == ()


@pytest.fixture(scope="module")
def release() -> Path:
    from cutlint.fetch import fetch

    return fetch("flashinfer-python==0.7.4")
