"""A release of flashinfer-python from the package index: its wheel through pip, what is needed into a cache.

Nothing is built, installed or executed. A release that the cache has is answered without the network.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cutlint.checkout import PACKAGE
from cutlint.errors import CutlintError, last_line
from cutlint.files import sha256
from cutlint.wheel import intact, unpack

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.version import Version

Progress = Callable[[str], None]

_PIP = (sys.executable, "-m", "pip")
_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check")
_PARTIAL = ".partial-"  # unfinished work of some run, beside the finished releases
_STALE = 24 * 3600  # seconds after which such work is that of a run that was killed
_FIRST_WHEELS = "0.5"  # releases before it are source archives
_BY_HAND = f"or unpack a wheel by hand and name its folder (https://pypi.org/project/{PACKAGE}/#files)"


def fetch(requirement: str, *, progress: Progress = lambda message: None) -> Path:
    """The folder of an unpacked release, fetched if it is not in the user's cache.

    In: a requirement on flashinfer-python with a version specifier; ``progress`` is told what is going on, in
    words for people and every half second. Out: a folder that ``checkout.find`` knows as a package. Pinned
    with ``==`` and in the cache, it costs neither network nor a start of pip. Raises CutlintError with advice
    when the release cannot be had.
    """
    wanted = _parse(requirement)
    releases = cache_folder() / "releases"
    found = _cached(wanted, releases)
    if found is not None:
        return found
    try:
        releases.mkdir(parents=True, exist_ok=True)
        _drop_stale(releases)
        with TemporaryDirectory(prefix=_PARTIAL, dir=releases, ignore_cleanup_errors=True) as name:
            work = Path(name)
            wheel = _download(wanted, work, progress)
            return _keep(wheel, wanted, work, releases, progress)
    except OSError as error:
        advice = "check that it can be written to and that the disk has room"
        raise CutlintError(f"cannot fill the cache {releases}: {error}; {advice}") from error


def cache_folder() -> Path:
    """The user's cache folder for cutlint; it need not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("cutlint", appauthor=False)


def _parse(requirement: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        wanted = Requirement(requirement)
    except InvalidRequirement:
        wanted = None
    if wanted is None or canonicalize_name(wanted.name) != PACKAGE or not wanted.specifier:
        raise CutlintError(f"{requirement!r} is no release; one is written {PACKAGE}==0.7.4")
    return wanted


def _pinned(wanted: Requirement) -> Version | None:
    """The one version that ``wanted`` allows, if it names just one."""
    from packaging.version import InvalidVersion, Version

    clauses = list(wanted.specifier)
    if len(clauses) != 1 or clauses[0].operator not in ("==", "==="):
        return None
    try:
        return Version(clauses[0].version)
    except InvalidVersion:  # ==0.7.*
        return None


def _cached(wanted: Requirement, releases: Path) -> Path | None:
    version = _pinned(wanted)
    folders = sorted(releases.glob(f"{PACKAGE}-{version}-*")) if version else []
    return next((folder for folder in folders if intact(folder)), None)


def _drop_stale(releases: Path) -> None:
    for folder in releases.glob(f"{_PARTIAL}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _STALE:
                shutil.rmtree(folder, ignore_errors=True)


def _download(wanted: Requirement, work: Path, progress: Progress) -> Path:
    """The wheel that pip chooses, below ``work``."""
    spelled = f"{PACKAGE}{wanted.specifier}"
    destination, temporary = work / "wheel", work / "pip"
    temporary.mkdir()
    progress(f"downloading {spelled}")
    child = subprocess.Popen(
        [*_PIP, "download", *_OPTIONS, "--dest", str(destination), spelled],
        cwd=work,  # not the user's folder, from which `-m pip` would import a file pip.py
        env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        errors = _wait(child, lambda: progress(f"downloading {spelled}: {_size(work) / 1e6:.0f} MB"))
    finally:
        child.kill()
        child.wait()
    wheels = list(destination.glob("*.whl"))
    if child.returncode != 0 or len(wheels) != 1:
        raise CutlintError(_failure(wanted, errors))
    return wheels[0]


def _wait(child: subprocess.Popen[bytes], tick: Callable[[], None]) -> bytes:
    """What ``child`` writes to stderr until it ends, with a ``tick`` every half second."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=0.5)[1]
        tick()


def _size(folder: Path) -> int:
    """Bytes of the files below ``folder``, some of which may vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _failure(wanted: Requirement, errors: bytes) -> str:
    from packaging.version import Version

    spelled = f"{PACKAGE}{wanted.specifier}"
    if b"No module named pip" in errors:
        said = f"this Python has no pip; run `{sys.executable} -m ensurepip`"
        return f"cannot download {spelled}: {said}, {_BY_HAND}"
    said = last_line(errors, "ERROR:").removeprefix("ERROR:").strip() or last_line(errors) or "no wheel"
    version = _pinned(wanted)
    if version is not None and version < Version(_FIRST_WHEELS):
        return (
            f"cannot download {spelled}: {said}. Releases before {_FIRST_WHEELS} are source archives only: "
            f"unpack the one from https://pypi.org/project/{PACKAGE}/{version}/#files and name its folder"
        )
    return f"cannot download {spelled}: {said}; check the version and the network, {_BY_HAND}"


def _keep(wheel: Path, wanted: Requirement, work: Path, releases: Path, progress: Progress) -> Path:
    """The finished release that ``wheel`` unpacks to; it appears in ``releases`` whole or not at all."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as error:
        raise CutlintError(f"pip downloaded something else than {wanted}: {wheel.name}") from error
    if name != PACKAGE or not wanted.specifier.contains(version, prereleases=True):
        raise CutlintError(f"pip downloaded something else than {wanted}: {wheel.name}")
    release = releases / f"{PACKAGE}-{version}-{sha256(wheel)[:16]}"
    if intact(release):
        return release
    progress(f"unpacking {PACKAGE} {version}")
    unpacked = work / "release"
    unpack(wheel, unpacked)
    try:
        unpacked.replace(release)
    except OSError:  # the folder is there by now
        if not intact(release):  # else another run was faster, and may be reading it
            release.rename(work / "damaged")
            unpacked.replace(release)
    return release
