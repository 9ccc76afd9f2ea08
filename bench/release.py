"""Times cutlint on a real release: `python bench/release.py flashinfer-python==0.7.4 [RUNS]`.

Every figure is the best of RUNS (default 5) cold processes, so that figures of one run can be compared: an empty Python
process, `cutlint --help`, tree-sitter alone over the generated files, and the whole check (without making the files).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cutlint import checkout
from cutlint.fetch import fetch
from cutlint.generator import generated

TREE_SITTER = """
import sys
from pathlib import Path
import tree_sitter, tree_sitter_cpp
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
for path in Path(sys.argv[1]).rglob("*.cu"):
    parser.parse(path.read_bytes())
"""


def best(command: Sequence[str], runs: int) -> float:
    """Seconds of the fastest of `runs` runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - start)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
    return min(times)


def main() -> None:
    requirement = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    release = fetch(requirement)
    found, _ = checkout.find(release, requirement)
    with generated(found) as made:
        folder = next(parent for parent in made.generated[0].parents if parent.name == "cutlass_instantiations")
        size = sum(path.stat().st_size for path in made.generated)
        print(f"{requirement}: {len(made.generated):,} generated files, {size:,} B; best of {runs} cold processes")
        cutlint = [sys.executable, "-m", "cutlint.cli"]
        check = [*cutlint, "check", str(folder), "--checkout", str(release)]
        everything = ["--format", "json", "--all", "--output", str(Path(folder) / "out.json")]
        for name, command in (
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("cutlint --help", [*cutlint, "--help"]),
            ("tree-sitter alone", [sys.executable, "-c", TREE_SITTER, str(folder)]),
            ("cutlint check, text", check),
            ("cutlint check, JSON of everything", [*check, *everything]),
        ):
            print(f"  {name:34} {best(command, runs):6.2f} s")


if __name__ == "__main__":
    main()
