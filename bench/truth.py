"""Records what a compiler says of a launcher's instantiations: `python bench/truth.py RELEASE LAUNCHER [STEP]`.

Prints a table (CSV): the arguments of every STEP-th instantiation that the release's generator writes for the launcher
LAUNCHER, by parameter name, then the figures of the clang engine, which reads the release's own headers. These tables are
what the model is tested against, so nothing of the model has a part in them.
"""

from __future__ import annotations

import contextlib
import csv
import sys

from cutlint.analysis import analyze
from cutlint.clang.engine import evaluate
from cutlint.sources import Request, open_source

FIGURES = {
    "smem": "total", "epilogue": "epilogue", "mainloop": "mainloop", "mainloop_tensors": "mainloop_tensors",
    "epilogue_tensors": "epilogue_tensors", "stages": "stages", "threads": "threads",
}  # fmt: skip


def main() -> None:
    requirement, name = sys.argv[1], sys.argv[2]
    step = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    request = Request()
    with contextlib.ExitStack() as stack:
        source = open_source(requirement, request, stack, lambda what, done, total: None)
        read = analyze(source, request)
        launcher = next(each for each in read.launchers if each.name == name)
        items = [each.arguments for each in read.instantiations if each.instantiation.name == name][::step]
        footprints = evaluate(launcher, source.base, items)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*launcher.parameters, *FIGURES, "refused"])
    for item, footprint in zip(items, footprints, strict=True):
        figures = [getattr(footprint, figure) for figure in FIGURES.values()]
        writer.writerow([*item.values(), *("" if one is None else one for one in figures), footprint.refused or ""])


if __name__ == "__main__":
    main()
