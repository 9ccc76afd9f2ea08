"""What the tests share: the small checkout of fixtures/, and sizers over it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutlint import launchers
from cutlint.cutlass import Cutlass
from cutlint.headers import Headers
from cutlint.launcher import Launcher
from cutlint.sizing import Sizer

FIXTURES = Path(__file__).parent.parent / "fixtures"
CHECKOUT = FIXTURES / "checkout"
LAUNCHER = next(CHECKOUT.rglob("moe_gemm_tma_ws_launcher.inl"))
CUTLASS = {
    "0.7.4": CHECKOUT / "3rdparty/cutlass/include",
    "0.6.8": FIXTURES / "cutlass-4.4",
    "0.5.3": FIXTURES / "cutlass-4.2",
}
COLUMNS = ("smem", "epilogue", "mainloop", "mainloop_tensors", "epilogue_tensors", "stages", "threads")


def read_launcher(path: Path = LAUNCHER, root: Path = CHECKOUT) -> Launcher:
    found, problems = launchers.read(path, Headers(path, root))
    assert problems == []
    assert len(found) == 1
    return found[0]


def table(name: str) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Rows of a truth table: the macro's arguments (by column), and everything."""
    with (FIXTURES / "truth" / name).open() as file:
        for row in csv.DictReader(file):
            columns = [each for each in row if each not in ("flashinfer", "refused")]
            yield {each: row[each] for each in columns[:17]}, row


def arguments(read: Launcher, columns: dict[str, str]) -> dict[str, str]:
    return dict(zip(read.parameters, columns.values(), strict=True))


@pytest.fixture(scope="session")
def sizers() -> dict[str, Sizer]:
    """A sizer for each flashinfer release of the tables, all with the small launcher."""
    read = read_launcher()
    return {release: Sizer(read, Cutlass(include)) for release, include in CUTLASS.items()}


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Sizer]:
    """A sizer over the small launcher with one text replaced by another."""

    def edit(*changes: tuple[str, str]) -> Sizer:
        text = LAUNCHER.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / LAUNCHER.relative_to(CHECKOUT)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        header = tmp_path / LAUNCHER.relative_to(CHECKOUT).parent / "../../include/moe_gemm_kernels.h"
        header.parent.mkdir()
        header.write_text((LAUNCHER.parent / "../../include/moe_gemm_kernels.h").read_text())
        return Sizer(read_launcher(path, tmp_path), Cutlass(CUTLASS["0.7.4"]))

    return edit


def sm120(
    read: Launcher, tile: tuple[int, int, int], fusion: str = "NONE", swap: bool = False, **changes: str
) -> dict[str, str]:
    """The arguments of an FP4×FP4 instantiation."""
    values = [
        "Sm120",
        "SafeFP4",
        "SafeFP4",
        "half",
        "void",
        "EpilogueOpDefault",
        fusion,
        *map(str, tile),
        "1",
        "1",
        "1",
    ]
    values += ["false", "false", "false", str(swap).lower()]
    return {**dict(zip(read.parameters, values, strict=True)), **changes}
