"""The generator's child process, with made-up generators in place of FlashInfer's."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cutlint import checkout, generator
from cutlint.errors import CutlintError
from cutlint.records import Checkout

WRITE = """
import os
def generate_gemm_operations(output_dir, architectures):
    for arch in architectures.split(";"):
        os.makedirs(os.path.join(output_dir, "gemm_grouped", arch))
        with open(os.path.join(output_dir, "gemm_grouped", arch, "a.generated.cu"), "w") as file:
            file.write(TEXT)
"""


def made_up(tmp_path: Path, source: str, folder: str = "gemm/cutlass") -> Checkout:
    path = tmp_path / "flashinfer/jit" / folder / "generate_kernels.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    (path.parent / "cutlass_library.py").write_text("TEXT = 'from the library'\n")
    (tmp_path / "flashinfer/__init__.py").write_text("raise SystemExit('the real package was imported')")
    return Checkout(label="made up", root=tmp_path, generator=path)


@pytest.mark.parametrize(
    ("folder", "imports"),
    [
        ("gemm/cutlass", "from .cutlass_library import TEXT\n"),
        (
            "gemm/cutlass",
            "from .cutlass_library import TEXT\nfrom ...cpp_ext import is_cuda_version_at_least\n"
            "assert is_cuda_version_at_least('12.8')\n",
        ),
        (
            "cutlass_gemm",
            "from .cutlass_library import *\nfrom ..cpp_ext import is_cuda_version_at_least\n"
            "assert is_cuda_version_at_least('12.8')\n",
        ),
    ],
)
def test_both_import_styles(tmp_path: Path, folder: str, imports: str) -> None:
    source = made_up(tmp_path, imports + WRITE, folder)
    with generator.generated(source, [90, 120]) as found:
        assert [path.relative_to(path.parents[3]).as_posix() for path in found.generated] == [
            "cutlass_instantiations/gemm_grouped/120/a.generated.cu",
            "cutlass_instantiations/gemm_grouped/90/a.generated.cu",
        ]
        assert {path.read_text() for path in found.generated} == {"from the library"}
        assert (found.label, found.root, found.generator) == (source.label, source.root, source.generator)
    assert not any(path.parents[3].exists() for path in found.generated)
    assert not list(tmp_path.rglob("__pycache__"))  # the checkout stays as it was


def test_all_architectures_by_default(tmp_path: Path) -> None:
    with generator.generated(made_up(tmp_path, "TEXT = ''\n" + WRITE)) as found:
        assert {path.parent.name for path in found.generated} == {"90", "100", "103", "120"}


def test_no_secrets_and_no_foreign_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "planted"))
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted/planted.py").write_text("")
    monkeypatch.chdir(tmp_path / "planted")
    text = (
        "import os\nfrom importlib.util import find_spec\n"
        "TEXT = repr((dict(os.environ), os.getcwd(), find_spec('planted')))\n"
    )
    with generator.generated(made_up(tmp_path, text + WRITE), [90]) as found:
        environment, cwd, planted = eval(found.generated[0].read_text())
        assert cwd == str(found.generated[0].parents[3])
    assert set(environment) <= {"PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP"}
    assert environment["TMPDIR"] == cwd
    assert planted is None


def test_a_hanging_generator_and_its_children_are_stopped(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    child = f"import time\nwhile True:\n open({str(beat)!r}, 'a').write('x')\n time.sleep(0.02)\n"
    hang = (
        "import os, subprocess, sys, time\n"
        "def generate_gemm_operations(output_dir, architectures):\n"
        f"    subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"    while not os.path.exists({str(beat)!r}): time.sleep(0.01)\n"
        "    time.sleep(60)\n"
    )
    start = time.monotonic()
    with (
        pytest.raises(CutlintError, match=r"did not end within 1\.5 s"),
        generator.generated(made_up(tmp_path, hang), [90], timeout=1.5),
    ):
        pass
    assert time.monotonic() - start < 20
    size = beat.stat().st_size
    assert size > 0
    time.sleep(0.2)
    assert beat.stat().st_size == size


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def generate_gemm_operations(o, a): raise ValueError('no tiles \\x1b[31m for ' + a)",
            "ValueError: no tiles ",
        ),
        ("from torch_that_is_not_there import x", "No module named 'torch_that_is_not_there'"),
        ("def (", "SyntaxError"),
        ("x = 1", "has no attribute 'generate_gemm_operations'"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("def generate_gemm_operations(o, a): pass", "wrote no .cu file"),
        ("import sys; sys.stderr.write('x' * 10_000_000 + '\\nthe end\\n'); sys.exit(1)", "failed: the end"),
    ],
)
def test_a_failing_generator(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(CutlintError) as error, generator.generated(made_up(tmp_path, source), [90]):
        pass
    assert message in str(error.value)
    assert "generate_kernels.py" in str(error.value)
    assert "Traceback" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_links_that_a_generator_leaves_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("")
    source = (
        "import os\ndef generate_gemm_operations(o, a):\n"
        f"    os.symlink({str(tmp_path / 'secret')!r}, os.path.join(o, 'a.cu'))\n"
    )
    with (
        pytest.raises(CutlintError, match="link to outside"),
        generator.generated(made_up(tmp_path, source), [90]),
    ):
        pass


@pytest.mark.parametrize("archs", [[], [90, 75]])
def test_unknown_architectures(tmp_path: Path, archs: list[int]) -> None:
    source = made_up(tmp_path, "TEXT = ''\n" + WRITE)
    with pytest.raises(CutlintError, match="known: 90, 100, 103, 120"), generator.generated(source, archs):
        pass


def test_no_generator(tmp_path: Path) -> None:
    with (
        pytest.raises(CutlintError, match=r"no generate_kernels\.py"),
        generator.generated(Checkout(label="TensorRT-LLM", root=tmp_path)),
    ):
        pass


@pytest.mark.download
def test_the_real_release() -> None:
    """From the design: 428 files; 360 + 1,476 + 96 + 88 by the macro, 940 mixed, 378 fpA_intB, 60 Sm80."""
    from cutlint.fetch import fetch

    source, _ = checkout.find(fetch("flashinfer-python==0.7.4"), "release")
    with generator.generated(source) as found:
        text = "".join(path.read_text() for path in found.generated)
        assert len(found.generated) == 428
    counts = {
        name: len(re.findall(rf"^ *(?:template void )?{name}[(<]", text, re.MULTILINE))
        for name in (
            "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM",
            r"sm90_generic_mixed_moe_(?:gemm|small_k)_kernelLauncher",
            r"sm90_generic_mixed_gemm_kernelLauncher",
            r"sm80_generic_fused_moe_gemm_kernelLauncher",
        )
    }
    assert list(counts.values()) == [360 + 1476 + 96 + 88, 940, 378, 60]
