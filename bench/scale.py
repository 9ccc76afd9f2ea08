"""Times cutlint on many instantiations: `python bench/scale.py flashinfer-python==0.7.4 [TIMES...]`.

For each of TIMES (default 1, 10 and 100) the release's generated files are written that often, each copy with other tiles
(N from 8 to 256, K up to eight times as large), so that no two copies say the same but for the fused Sm80 kernels, which
have no such tile. Then one cold process checks them all. Printed are its time and the memory of the largest process at its
peak.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from cutlint import checkout
from cutlint.fetch import fetch
from cutlint.generator import generated

# The tile's N and K in an invocation of the macro, and in the cute::Shape of a function template's arguments
_TILES = re.compile(
    r"(\bINSTANTIATE_\w+\((?:[^,]*,){8}\s*|Shape<\s*cute::Int<\d+>,\s*cute::Int<)(\d+)(,\s*|>,\s*cute::Int<)(\d+)"
)


def altered(text: str, copy: int) -> str:
    """`text` with the tiles of the copy with this number, which are those it has for number 0."""

    def tile(match: re.Match[str]) -> str:
        n = 8 * (1 + (int(match.group(2)) // 8 - 1 + copy) % 32) if copy else int(match.group(2))
        return f"{match.group(1)}{n}{match.group(3)}{int(match.group(4)) << (copy // 32)}"

    return _TILES.sub(tile, text)


def measured(command: list[str]) -> tuple[float, float, int]:
    """Seconds, seconds of all cores and peak memory in bytes of one run."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(f"cutlint exited with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    requirement = sys.argv[1]
    release = fetch(requirement)
    found, _ = checkout.find(release, requirement)
    with generated(found) as made:
        texts = {path.name: path.read_text() for path in made.generated}
    for times in [int(each) for each in sys.argv[2:]] or [1, 10, 100]:
        with TemporaryDirectory(prefix="cutlint-") as name:
            for copy in range(times):
                folder = Path(name) / "cutlass_instantiations" / str(copy)
                folder.mkdir(parents=True)
                for file, text in texts.items():
                    (folder / file).write_text(altered(text, copy))
            command = [sys.executable, "-m", "cutlint.cli", "check", name, "--checkout", str(release)]
            seconds, cores, memory = measured(command)
            print(
                f"{times:4} times: {seconds:7.1f} s, {cores:7.1f} s of all cores, {memory / 2**20:6,.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
