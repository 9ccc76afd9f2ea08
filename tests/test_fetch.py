"""Fetching a release: a stand-in for pip, hostile wheels, the cache."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from cutlint import checkout, fetch, wheel
from cutlint.errors import CutlintError
from cutlint.files import sha256

NAME = "flashinfer_python-0.7.4-py3-none-any.whl"
LAUNCHER = "flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/cutlass_kernels/moe_gemm/launchers/moe.inl"
NEEDED = {
    LAUNCHER: "launcher",
    "flashinfer/data/csrc/other/deep/x.inl": "x",
    "flashinfer/data/cutlass/include/cutlass/version.h": "#define CUTLASS_MAJOR 4",
    "flashinfer/jit/gemm/cutlass/generate_kernels.py": "generator",
    "flashinfer/jit/gemm/cutlass/cutlass_library.py": "library",
    "flashinfer_python-0.7.4.dist-info/METADATA": "Name: flashinfer-python",
}
NOT_NEEDED = {
    "flashinfer/__init__.py": "",
    "flashinfer/jit/core.py": "",
    "flashinfer/data/csrc/a.cu": "",
    "flashinfer/data/cutlass/tools/x.h": "",
    "flashinfer/data/cccl/x.inl": "",
    "other/flashinfer/data/csrc/nv_internal/x.h": "",
}
# In place of pip: counts its calls, records its arguments, and copies the wheel that it is told to.
PIP = """
import os, shutil, sys
with open(os.environ["FAKE_PIP_LOG"], "a") as log:
    log.write("\\n".join(sys.argv[1:]) + "\\n\\n")
print(os.environ.get("FAKE_PIP_SAYS", ""), file=sys.stderr)
if os.environ.get("FAKE_PIP_WHEEL"):
    to = sys.argv[sys.argv.index("--dest") + 1]
    os.makedirs(to)
    shutil.copy(os.environ["FAKE_PIP_WHEEL"], to)
else:
    sys.exit(1)
"""


class FakePip:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wheel = folder / NAME
        self.log = folder / "pip.log"
        script = folder / "fake_pip.py"
        script.write_text(PIP)
        monkeypatch.setattr(fetch, "_PIP", (sys.executable, str(script)))
        monkeypatch.setattr(fetch, "cache_folder", lambda: folder / "cache")
        monkeypatch.setenv("FAKE_PIP_LOG", str(self.log))
        monkeypatch.setenv("FAKE_PIP_WHEEL", str(self.wheel))
        self.releases = folder / "cache/releases"
        build(self.wheel, {**NEEDED, **NOT_NEEDED})

    @property
    def calls(self) -> list[list[str]]:
        return [call.split("\n") for call in self.log.read_text().split("\n\n")[:-1]] if self.log.exists() else []


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    return FakePip(tmp_path, monkeypatch)


def build(path: Path, members: dict[str, str], extra: ZipInfo | None = None) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
        if extra is not None:
            archive.writestr(extra, "../../outside")


def files_below(folder: Path) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    del found[wheel.MANIFEST]
    return found


def test_only_what_is_needed_is_unpacked(pip: FakePip) -> None:
    messages: list[str] = []
    folder = fetch.fetch("flashinfer-python==0.7.4", progress=messages.append)
    assert files_below(folder) == NEEDED
    assert folder.parent == pip.releases
    assert folder.name.startswith("flashinfer-python-0.7.4-")
    assert [path.name for path in pip.releases.iterdir()] == [folder.name]  # nothing unfinished stays
    assert messages[0] == "downloading flashinfer-python==0.7.4"
    assert messages[-1] == "unpacking flashinfer-python 0.7.4"
    found, problems = checkout.find(folder, "release")
    assert problems == []
    assert found.launchers == (folder / LAUNCHER,)


def test_how_pip_is_called(pip: FakePip) -> None:
    fetch.fetch("FlashInfer_Python == 0.7.4")
    (call,) = pip.calls
    assert call[0] == "download"
    assert call[-1] == "flashinfer-python==0.7.4"
    assert {"--no-deps", "--only-binary", ":all:", "--no-input"} <= set(call)


def test_a_pinned_release_in_the_cache_needs_no_pip(pip: FakePip) -> None:
    first = fetch.fetch("flashinfer-python==0.7.4")
    assert fetch.fetch("flashinfer-python==0.7.4") == first
    assert len(pip.calls) == 1
    assert fetch.fetch("flashinfer-python>=0.7") == first  # pip has to say which
    assert len(pip.calls) == 2


def test_another_version_is_not_answered_from_the_cache(pip: FakePip, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.fetch("flashinfer-python==0.7.4")
    for wanted in ("flashinfer-python==0.7", "flashinfer-python==0.7.4.post1", "flashinfer-python==0.7.5"):
        with pytest.raises(CutlintError, match="something else"):
            fetch.fetch(wanted)
    other = pip.wheel.with_name("numpy-0.7.4-py3-none-any.whl")
    build(other, NEEDED)
    monkeypatch.setenv("FAKE_PIP_WHEEL", str(other))
    with pytest.raises(CutlintError, match="something else"):
        fetch.fetch("flashinfer-python>=0.7")


@pytest.mark.parametrize("damage", ["missing", "cut", "no manifest"])
def test_a_damaged_release_is_fetched_again(pip: FakePip, damage: str) -> None:
    folder = fetch.fetch("flashinfer-python==0.7.4")
    if damage == "missing":
        (folder / LAUNCHER).unlink()
    elif damage == "cut":
        (folder / LAUNCHER).write_text("")
    else:
        (folder / wheel.MANIFEST).unlink()
    assert fetch.fetch("flashinfer-python==0.7.4") == folder
    assert files_below(folder) == NEEDED
    assert len(pip.calls) == 2


def test_a_faster_run_wins(pip: FakePip, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = wheel.unpack

    def slow(archive: Path, folder: Path) -> int:
        count = unpack(archive, folder)
        theirs = pip.releases / f"flashinfer-python-0.7.4-{sha256(archive)[:16]}"
        unpack(archive, theirs)
        (theirs / "theirs").write_text("")
        return count

    monkeypatch.setattr(fetch, "unpack", slow)
    folder = fetch.fetch("flashinfer-python==0.7.4")
    assert (folder / "theirs").exists()  # it may be in use
    assert list(pip.releases.iterdir()) == [folder]


def test_an_interrupted_run_leaves_no_release(pip: FakePip, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(archive: Path, folder: Path) -> int:
        wheel.unpack(archive, folder)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "unpack", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch.fetch("flashinfer-python==0.7.4")
    assert list(pip.releases.iterdir()) == []


def test_old_unfinished_work_is_removed(pip: FakePip) -> None:
    old, young = pip.releases / ".partial-old", pip.releases / ".partial-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    fetch.fetch("flashinfer-python==0.7.4")
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.parametrize(
    ("requirement", "says", "advice"),
    [
        (
            "flashinfer-python==0.3.1",
            "ERROR: No matching distribution found for x",
            "unpack the one from https://",
        ),
        (
            "flashinfer-python==0.9",
            "ERROR: No matching distribution found for x",
            "check the version and the network",
        ),
        ("flashinfer-python==0.7.4", "python: No module named pip", "ensurepip"),
        (
            "flashinfer-python==0.7.4",
            "Traceback (most recent call last):\n  File\nOSError: full",
            "OSError: full",
        ),
    ],
)
def test_when_pip_fails(
    pip: FakePip, monkeypatch: pytest.MonkeyPatch, requirement: str, says: str, advice: str
) -> None:
    monkeypatch.setenv("FAKE_PIP_WHEEL", "")
    monkeypatch.setenv("FAKE_PIP_SAYS", says)
    with pytest.raises(CutlintError) as error:
        fetch.fetch(requirement)
    assert advice in str(error.value)
    assert "name its folder" in str(error.value)
    assert "Traceback" not in str(error.value)
    assert list(pip.releases.iterdir()) == []


def test_a_file_named_pip_in_the_users_folder_is_not_run(
    pip: FakePip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(fetch, "_PIP", (sys.executable, "-m", "planted"))
    with pytest.raises(CutlintError, match="No module named planted"):
        fetch.fetch("flashinfer-python==0.7.4")
    assert not (tmp_path / "ran").exists()


def test_a_cache_that_cannot_be_written(pip: FakePip) -> None:
    pip.releases.parent.write_text("a file where the folder should be")
    with pytest.raises(CutlintError, match="cannot fill the cache"):
        fetch.fetch("flashinfer-python==0.7.4")


@pytest.mark.parametrize("text", ["numpy==2", "flashinfer-python", "nonsense ==", "flashinfer-python @ file:///x.whl"])
def test_only_releases_are_fetched(pip: FakePip, text: str) -> None:
    with pytest.raises(CutlintError, match="is no release"):
        fetch.fetch(text)
    assert pip.calls == []


@pytest.mark.parametrize(
    "name",
    [
        "../evil.inl",
        "/etc/evil.inl",
        "C:/evil.inl",
        "flashinfer/data/csrc/nv_internal/../../../../../evil.inl",
        "flashinfer/data/csrc/nv_internal\\..\\..\\evil.inl",
        "flashinfer/data/csrc/nv_internal/evil\n.inl",
    ],
)
def test_hostile_names(tmp_path: Path, name: str) -> None:
    build(tmp_path / NAME, {**NEEDED, name: "evil"})
    with pytest.raises(CutlintError, match="is refused"):
        wheel.unpack(tmp_path / NAME, tmp_path / "out/side/folder")
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_name_that_is_cut_at_a_nul(tmp_path: Path) -> None:
    build(tmp_path / NAME, {**NEEDED, "flashinfer/data/csrc/nv_internal/a.inl?x": "evil"})
    (tmp_path / NAME).write_bytes((tmp_path / NAME).read_bytes().replace(b"a.inl?x", b"a.inl\0x"))
    with pytest.raises(CutlintError, match="is refused"):
        wheel.unpack(tmp_path / NAME, tmp_path / "folder")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO])
def test_hostile_kinds(tmp_path: Path, kind: int) -> None:
    member = ZipInfo("flashinfer/data/csrc/nv_internal/link.inl")
    member.external_attr = (kind | 0o777) << 16
    build(tmp_path / NAME, NEEDED, member)
    with pytest.raises(CutlintError, match="not a regular file"):
        wheel.unpack(tmp_path / NAME, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (wheel.MAX_MEMBER, wheel.MAX_TOTAL) == (64 * 2**20, 2 * 2**30)
    sizes = [len(text) for text in NEEDED.values()]
    exact = {"MAX_MEMBER": max(sizes), "MAX_TOTAL": sum(sizes), "MAX_COUNT": len(sizes)}
    build(tmp_path / NAME, {**NEEDED, **NOT_NEEDED, "flashinfer/large": "x" * 100})  # not needed: not counted
    for name, value in exact.items():
        monkeypatch.setattr(wheel, name, value)
    assert wheel.unpack(tmp_path / NAME, tmp_path / "fits") == len(NEEDED)
    for name, value in exact.items():
        with monkeypatch.context() as patch:
            patch.setattr(wheel, name, value - 1)
            with pytest.raises(CutlintError, match="is refused"):
                wheel.unpack(tmp_path / NAME, tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path: Path) -> None:
    build(tmp_path / NAME, NEEDED, ZipInfo(LAUNCHER))
    with pytest.raises(CutlintError, match="two members of one name"):
        wheel.unpack(tmp_path / NAME, tmp_path / "folder")


def test_damaged_wheels(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"PK not a zip")
    with pytest.raises(CutlintError, match="is damaged"):
        wheel.unpack(path, tmp_path / "a")
    with ZipFile(path, "w") as archive:  # stored, so that a byte can be changed
        archive.writestr(LAUNCHER, "find me")
    path.write_bytes(path.read_bytes().replace(b"find me", b"find ME"))
    with pytest.raises(CutlintError, match="is damaged"):
        wheel.unpack(path, tmp_path / "b")


def test_a_wheel_without_launchers(tmp_path: Path) -> None:
    build(tmp_path / NAME, NOT_NEEDED)
    with pytest.raises(CutlintError, match="nv_internal"):
        wheel.unpack(tmp_path / NAME, tmp_path / "folder")


@pytest.mark.download
def test_a_real_release_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch.fetch("flashinfer-python==0.7.4")
    assert (folder / "flashinfer/data/cutlass/include/cutlass/version.h").is_file()
    monkeypatch.setattr(fetch, "_PIP", ("no such program",))
    assert fetch.fetch("flashinfer-python==0.7.4") == folder
