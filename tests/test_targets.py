"""Targets: the limits of NVIDIA's table, and the names people type."""

from __future__ import annotations

import pytest

from cutlint import targets
from cutlint.errors import CutlintError

# CUDA C++ Programming Guide, Technical Specifications per Compute Capability: KiB per block and per multiprocessor
LIMITS = {
    "8.0": (163, 164), "8.6": (99, 100), "8.7": (163, 164), "8.9": (99, 100), "9.0": (227, 228), "10.0": (227, 228),
    "10.1": (227, 228), "10.3": (227, 228), "11.0": (227, 228), "12.0": (99, 100), "12.1": (99, 100),
}  # fmt: skip


def test_limits() -> None:
    found = {each.compute_capability: (each.limit / 1024, each.per_sm / 1024) for each in targets.known()}
    assert found == LIMITS


@pytest.mark.parametrize(
    ("name", "capability"),
    [("rtx-pro-6000", "12.0"), ("RTX 5090", "12.0"), ("gb10", "12.1"), ("h200", "9.0"), ("sm_120", "12.0"), ("sm120a", "12.0"),
     ("12.0", "12.0"), ("120", "12.0"), ("b200", "10.0"), ("B300", "10.3"), ("dgx_spark", "12.1")],
)  # fmt: skip
def test_names(name: str, capability: str) -> None:
    assert [each.compute_capability for each in targets.find([name])] == [capability]


def test_no_name_means_two_targets() -> None:
    names = [targets._folded(each) for target in targets.known() for each in (target.name, *target.aliases)]
    assert len(names) == len(set(names))


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(CutlintError, match=r"unknown target 'rtx-9999'(?s:.*)gb10") as error:
        targets.find(["rtx-9999"])
    assert all(each.name in str(error.value) for each in targets.known())


def test_which_gpus_run_which_kernels() -> None:
    for arch, capabilities in ((120, ["12.0", "12.1"]), (90, ["9.0"]), (100, ["10.0", "10.3"]), (103, ["10.3"])):
        assert [each.compute_capability for each in targets.built_for(arch, targets.known())] == capabilities
