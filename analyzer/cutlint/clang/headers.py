"""Where the headers are that a launcher needs: the checkout's, CUDA's and the C++ library's; and what they contain."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from cutlint.errors import CutlintError
from cutlint.records import Checkout

STUBS = Path(__file__).parent / "stubs"
INSTALL = "pip install 'cutlint[clang]'"

_KERNELS = Path("tensorrt_llm/kernels/cutlass_kernels")
_SUFFIXES = frozenset({".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".def", ""})
_MAX_BYTES = 16 * 2**20  # of one header: none is nearly as large

# What a build with every kernel enabled defines.
_DEFINES = (
    "ENABLE_BF16", "ENABLE_FP8", "ENABLE_FP4", "USING_OSS_CUTLASS_MOE_GEMM", "COMPILE_HOPPER_TMA_GEMMS",
    "COMPILE_HOPPER_TMA_GROUPED_GEMMS", "COMPILE_BLACKWELL_TMA_GEMMS", "COMPILE_BLACKWELL_TMA_GROUPED_GEMMS",
    "COMPILE_BLACKWELL_SM103_TMA_GROUPED_GEMMS", "COMPILE_BLACKWELL_SM120_TMA_GROUPED_GEMMS",
    "CUTLASS_ENABLE_GDC_FOR_SM90=1", "CUTLASS_ENABLE_GDC_FOR_SM100=1",
)  # fmt: skip

# What each package brings, by a file that tells that it is there (below one of the include folders).
_CUDA_FILES = {
    "nvidia-cuda-runtime": "cuda_runtime.h",
    "nvidia-cuda-crt": "crt/host_defines.h",
    "nvidia-cuda-cccl": "cuda/std/utility",
}
_NEWEST = "cuda_fp4.h"  # from CUDA 12.8 on


class Headers(msgspec.Struct, frozen=True):
    """Include folders in the order in which they are searched: `checkout` (with cutlint's stubs before them), `cuda`, and
    `system`, the C++ and C libraries'. `trees` are the folders that hold all of the checkout's headers; `versions` says
    which CUDA and which C++ library it is."""

    checkout: tuple[Path, ...]
    cuda: tuple[Path, ...]
    system: tuple[Path, ...]
    trees: tuple[Path, ...]
    cuda_version: int
    versions: str

    @property
    def options(self) -> tuple[str, ...]:
        """libclang's options for them."""
        major, minor = self.cuda_version // 1000, self.cuda_version % 1000 // 10
        defines = (*_DEFINES, f"__CUDACC_VER_MAJOR__={major}", f"__CUDACC_VER_MINOR__={minor}")
        return (
            "-std=c++17", "-w", "-ferror-limit=0", "-ftemplate-backtrace-limit=0", "-fno-spell-checking",
            "-nostdinc", "-nostdinc++",
            *(f"-I{each}" for each in (STUBS, *self.checkout, *self.cuda)),
            *(f"-isystem{each}" for each in self.system),
            *(f"-D{each}" for each in defines),
        )  # fmt: skip

    def content(self) -> str:
        """A digest of every header of the checkout, wherever it lies, and of CUDA's and the C++ library's versions."""
        digest = hashlib.sha256(self.versions.encode())
        for number, tree in enumerate(self.trees):
            for name, path in sorted(_files(tree)):
                digest.update(f"\0{number}\0{name}\0".encode("utf-8", "surrogateescape"))
                digest.update(_bytes(path))
        return digest.hexdigest()


def find(launcher: Path, checkout: Checkout, cuda_include: Path | None = None) -> Headers:
    """The headers for the launcher file `launcher` of `checkout`; `cuda_include` is the folder of CUDA's if it is given.

    Raises:
        CutlintError: when something is missing, with what to install or to name.
    """
    folders, trees = checkout_folders(launcher, checkout)
    cuda, version = cuda_folders(cuda_include)
    system, library = library_folders()
    return Headers(folders, cuda, system, trees, version, f"CUDA {version} {_cuda_digest(cuda)}\n{library}")


# -- the checkout


def checkout_folders(launcher: Path, checkout: Checkout) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Include folders, and the folders that hold all that is found through them.

    FlashInfer keeps TensorRT-LLM's folder ``cpp`` as ``csrc/nv_internal``, and its third parties beside CUTLASS.

    Raises:
        CutlintError: when the launcher lies in no such folder, or CUTLASS is not there.
    """
    if checkout.cutlass is None:
        raise CutlintError(f"{checkout.label} has no CUTLASS headers (cutlass/version.h): the clang engine needs them")
    base = next((each for each in launcher.parents if (each / _KERNELS).is_dir()), None)
    if base is None:
        raise CutlintError(f"{launcher} is not below a folder {_KERNELS}: the clang engine does not know its headers")
    third_party = checkout.cutlass.parent.parent
    around = [each for each in base.parents if each == checkout.root or checkout.root in each.parents]
    wanted = [
        base,
        base / "include",
        base / "tensorrt_llm/cutlass_extensions/include",
        base / _KERNELS / "include",
        base / _KERNELS,
        *(each / "include" for each in around),
        checkout.cutlass,
        checkout.cutlass.parent / "tools/util/include",
        third_party / "spdlog/include",
    ]
    folders = tuple(dict.fromkeys(each for each in wanted if each.is_dir()))
    trees = tuple(each for each in (base / "tensorrt_llm", *folders) if base / "tensorrt_llm" not in each.parents)
    return folders, tuple(each for each in trees if each != base)


def _files(tree: Path) -> Iterable[tuple[str, str]]:
    """Headers below `tree`: relative name and path."""
    top = str(tree)
    for folder, subfolders, names in os.walk(top):
        subfolders[:] = [each for each in subfolders if not each.startswith(".")]
        for name in names:
            if name[name.rfind(".") if "." in name else len(name) :] in _SUFFIXES:
                path = f"{folder}/{name}"
                yield path[len(top) :], path


def _bytes(path: str) -> bytes:
    try:
        if os.stat(path).st_size > _MAX_BYTES:  # noqa: PTH116
            return b""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


# -- CUDA


def cuda_folders(
    explicit: Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[tuple[Path, ...], int]:
    """CUDA's include folders and its version (13000 for 13.0): of the folder `explicit`, else of CUDA_HOME or CUDA_PATH,
    else of the wheels installed beside cutlint. No toolkit is needed, only headers.

    Raises:
        CutlintError: when there are none, or what there is is not enough.
    """
    if explicit is not None:
        folders = _cuda_at(explicit) or _cuda_at(explicit / "include")
        problem = _cuda_problem(folders)
        if problem:
            raise CutlintError(f"--cuda-include {explicit}: {problem}; name CUDA's include folder, or {INSTALL}")
        return folders, _cuda_version(folders)
    tried = []
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(variable):
            folders = _cuda_at(Path(environment[variable]) / "include")
            problem = _cuda_problem(folders)
            if not problem:
                return folders, _cuda_version(folders)
            tried.append(f"{variable}={environment[variable]}: {problem}")
    folders = next(filter(None, map(_cuda_at, _wheel_folders())), ())
    problem = _cuda_problem(folders)
    if problem:
        told = "".join(f"; {each}" for each in tried)
        raise CutlintError(
            f"the clang engine needs CUDA's headers, no toolkit: {INSTALL}, or name their folder with --cuda-include "
            f"({problem}{told})"
        )
    return folders, _cuda_version(folders)


def _wheel_folders() -> list[Path]:
    """Include folders of NVIDIA's wheels in this environment, the newest CUDA's first."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [each for place in places for each in Path(place).glob("cu[0-9]*/include")]
    return sorted(found, key=lambda each: int(re.sub(r"\D", "", each.parent.name) or 0), reverse=True)


def _cuda_at(folder: Path) -> tuple[Path, ...]:
    """The include folders of a CUDA whose ``cuda_runtime.h`` is in `folder`; none if it is not."""
    if not (folder / "cuda_runtime.h").is_file():
        return ()
    return tuple(each for each in (folder, folder / "cccl") if each.is_dir())


def _cuda_problem(folders: tuple[Path, ...]) -> str:
    if not folders:
        return "no cuda_runtime.h"
    for package, file in _CUDA_FILES.items():
        if not any((each / file).is_file() for each in folders):
            return f"no {file} ({package})"
    if not any((each / _NEWEST).is_file() for each in folders):
        return f"no {_NEWEST}: CUDA 12.8 or newer is needed"
    return "" if _cuda_version(folders) else "no CUDART_VERSION in cuda_runtime_api.h"


def _cuda_version(folders: tuple[Path, ...]) -> int:
    match = re.search(rb"#\s*define\s+CUDART_VERSION\s+(\d+)", _bytes(str(folders[0] / "cuda_runtime_api.h")))
    return int(match.group(1)) if match else 0


def _cuda_digest(folders: tuple[Path, ...]) -> str:
    """CUDA's own headers by content (not CCCL's thousands, whose version goes with them)."""
    digest = hashlib.sha256()
    for path in sorted(each for folder in folders for each in folder.glob("*.h*")):
        digest.update(path.name.encode() + _bytes(str(path)))
    for folder in folders:
        digest.update(_bytes(str(folder / "cuda/std/__cccl/version.h")))
    return digest.hexdigest()


# -- the C++ library


def library_folders(root: Path = Path("/")) -> tuple[tuple[Path, ...], str]:
    """Include folders of GCC's C++ library, GCC's own headers (libclang brings none) and the C library; which they are.

    From ``g++`` if there is one, else from where Linux distributions keep them below `root`.

    Raises:
        CutlintError: when there is no C++ library.
    """
    for folders, version in (_asked_of_gcc(), _known_folders(root)):
        if any((each / "vector").is_file() for each in folders) and any(
            (each / "stddef.h").is_file() for each in folders
        ):
            return folders, version
    raise CutlintError(
        "the clang engine needs the headers of GCC's C++ library, and found neither g++ nor /usr/include/c++: "
        "install g++ (apt-get install g++, dnf install gcc-c++)"
    )


def _asked_of_gcc() -> tuple[tuple[Path, ...], str]:
    command = ["g++", "-E", "-x", "c++", "-v", os.devnull]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return (), ""
    said = done.stderr.decode("utf-8", "surrogateescape")
    listed = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", said, re.DOTALL)
    folders = [Path(line.strip()) for line in listed.group(1).splitlines()] if listed else []
    version = re.search(r"^gcc version.*$", said, re.MULTILINE)
    return tuple(each for each in folders if each.is_dir()), version.group() if version else said


def _known_folders(root: Path) -> tuple[tuple[Path, ...], str]:
    libraries = sorted((root / "usr/include/c++").glob("[0-9]*"), key=_numbers, reverse=True)
    if not libraries:
        return (), ""
    library = libraries[0]
    version = library.name
    own = [
        each
        for place in ("usr/lib/gcc", "usr/lib64/gcc")
        for each in sorted((root / place).glob(f"*/{version}*/include"))
    ]
    triples = [each.parent.parent.name for each in own]
    multiarch = [root / "usr/include" / triple for triple in triples]
    platform = [
        *(each / "c++" / version for each in multiarch),  # Debian
        *(library / triple for triple in triples),  # others
    ]
    folders = [library, *platform, library / "backward", *own, *multiarch, root / "usr/include"]
    return tuple(dict.fromkeys(each for each in folders if each.is_dir())), f"libstdc++ {version}"


def _numbers(path: Path) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", path.name))
