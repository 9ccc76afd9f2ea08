"""The report as one HTML page that needs nothing else: no network, no other file.

The verdicts and the findings are plain HTML. The table of instantiations, the byte maps and the heat maps are drawn by
reports/report.js from the facts, which the page carries as compact JSON: equal texts, configurations and footprints once.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cutlint.data import data_folder
from cutlint.footprint.envelope import output_tile
from cutlint.footprint.layout import Region
from cutlint.footprint.records import Footprint
from cutlint.printable import printable
from cutlint.records import Finding, Location
from cutlint.report import ConfigReport, InstantiationReport, Report, TargetReport
from cutlint.wording import count, counts, groups, place

Verdict = Literal["over", "partly", "refused", "skipped", "limit", "fits", "unchecked", "unknown"]
_PARTS = {  # what a region belongs to, by its kind; all else is overhead: barriers, tensor maps, scheduler, padding
    **dict.fromkeys(("A", "B", "SFA", "SFB", "scales", "zeros"), "mainloop"),
    **dict.fromkeys(("C", "D", "C/D", "fusion"), "epilogue"),
}


def render(report: Report) -> str:
    """The page: the same bytes for the same report."""
    folder = data_folder("reports")
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(printable=printable, place=place, count=count, zip=zip)
    counted = [each for each in report.findings if each.suppressed is None]
    suppressed = [each for each in report.findings if each.suppressed is not None]
    found = [*groups(counted), *groups(suppressed)]
    return environment.get_template("report.html.jinja").render(
        report=report,
        counts=counts(report.summary.findings),
        verdicts=[_sentence(target, report.instantiations) for target in report.targets],
        groups=found,
        rules={rule.id: rule for rule in report.rules},
        style=Markup(style),
        script=Markup(script),
        data=_embedded(_facts(report, found)),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(text: str) -> str:
    """As a Content-Security-Policy names an inline style or script."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embedded(value: Any) -> Markup:
    """`value` as JSON that stays text inside a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII only: also U+2028 is an escape
    return Markup(
        text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\x7f", "\\u007f")
    )


def verdict(each: InstantiationReport, limit: int | None) -> Verdict:
    """What an instantiation does where a block may have `limit` bytes; None: no GPU of the report runs it."""
    footprint = each.footprint
    if footprint is not None and (footprint.refused is not None or footprint.fails_in_nvcc is not None):
        return "refused"
    if footprint is None or footprint.total is None:
        return "unknown"
    if limit is None:
        return "unchecked"
    if each.skipped and footprint.total >= limit:
        return "skipped"
    return "over" if footprint.total > limit else "limit" if footprint.total == limit else "fits"


def _verdicts(each: InstantiationReport, limits: Sequence[int]) -> list[Verdict]:
    """The verdict over all GPUs, then for each of `limits`, the least first."""
    found = [verdict(each, limit) for limit in limits]
    if not found:
        return [verdict(each, None)]
    differ = found[0] in ("over", "skipped") and found[-1] != found[0]
    return ["partly" if differ else found[0], *found]


def _sentence(target: TargetReport, instantiations: Sequence[InstantiationReport]) -> tuple[Verdict, str]:
    """What the report says of one GPU, in one sentence."""
    runs = [each for each in instantiations if each.config is not None and each.config.arch in target.runs]
    found: dict[Verdict, list[InstantiationReport]] = {}
    for each in runs:
        found.setdefault(verdict(each, target.limit), []).append(each)
    totals = {name: [each.footprint.total or 0 for each in some if each.footprint] for name, some in found.items()}
    kernels, limit = count(len(runs), "instantiation"), f"{target.limit:,} B a block may have"
    others = []
    if "limit" in found and "over" in found:
        others.append(f"{len(found['limit']):,} sit exactly at the limit and run")
    if "skipped" in found:
        others.append(f"{len(found['skipped']):,} that need the limit or more are passed over by their launcher")
    if "refused" in found:
        others.append(f"{len(found['refused']):,} do not compile")
    if "unknown" in found:
        others.append(f"{len(found['unknown']):,} could not be sized")
    rest = "".join(f"; {each}" for each in others)
    if not runs:
        return "unchecked", f"none of the instantiations listed is for it{rest}."
    if "over" in found:
        most = max(totals["over"]) - target.limit
        return "over", f"{len(found['over']):,} of {kernels} will not launch: up to {most:,} B over the {limit}{rest}."
    if "limit" in found:
        some = f"{len(found['limit']):,} of {kernels} take all of the {limit}, and run"
        return "limit", f"no instantiation is over the limit; {some}{rest}."
    if "fits" in found:
        left = target.limit - max(totals["fits"])
        every = f"all {kernels} fit" if len(found["fits"]) == len(runs) else f"{len(found['fits']):,} of {kernels} fit"
        return "fits", f"{every} the {limit}, with {left:,} B left at least{rest}."
    return "unknown", f"none of {kernels} runs{rest}."


class _Table:
    """Values kept once, by number in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, make: Callable[[], Any]) -> int:
        """The number of the value that `make` makes for `key`; -1 for no key."""
        if key is None:
            return -1
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(make())
        return found


Text = Callable[[str | None], int]


def _facts(report: Report, found: Sequence[list[Finding]]) -> dict[str, Any]:
    """What report.js reads. A row has numbers for what stands in `strings`, `configs`, `footprints` and `findings`, -1 for
    what is not known."""
    strings, configs, footprints, decisions = _Table(), _Table(), _Table(), _Table()

    def text(value: str | None) -> int:
        return strings.number(value, lambda: printable(value or ""))

    limits = {arch: _limits(report.targets, arch) for arch in _archs(report)}
    concerned: dict[tuple[str, Any], list[int]] = {}
    for number, group in enumerate(found):
        for finding in group:
            about = concerned.setdefault((finding.file, finding.range), [])
            if number not in about:
                about.append(number)
    rows = []
    for each in report.instantiations:
        allowed = limits[each.config.arch] if each.config is not None else []
        found_verdicts = _verdicts(each, [limit for limit, _ in allowed])
        start = each.range.start
        rows.append(
            [
                text(each.file),
                start.line + 1,
                start.character + 1,
                text(each.subject),
                configs.number(each.config, partial(_config, each.config, text)),
                footprints.number(each.footprint, partial(_footprint, each.footprint, text)),
                footprints.number(each.compared, partial(_footprint, each.compared, text)),
                text(each.unknown),
                text(each.name),
                text(each.guard),
                [[text(name), text(value)] for name, value in each.arguments.items()],
                decisions.number(each.decisions, partial(_locations, each.decisions, text)),
                [text(one) for one in found_verdicts],
                concerned.get((each.file, each.range), []),
            ]
        )
    return {
        "rows": rows,
        "limits": limits,
        "gpus": [[text(each.compute_capability), each.limit] for each in report.targets],
        "configs": configs.values,
        "footprints": footprints.values,
        "decisions": decisions.values,
        "findings": [_finding(group[0], text) for group in found],
        "links": {text(name): _link(whole) for name, whole in report.files.items() if whole is not None},
        "strings": strings.values,
    }


def _archs(report: Report) -> list[str]:
    return sorted({each.config.arch for each in report.instantiations if each.config is not None})


def _limits(targets: Sequence[TargetReport], arch: str) -> list[tuple[int, list[str]]]:
    """What the GPUs that run kernels of `arch` allow a block, the least first, and which GPUs those are."""
    found: dict[int, list[str]] = {}
    for target in targets:
        if arch in target.runs:
            found.setdefault(target.limit, []).append(target.compute_capability)
    return [(limit, names) for limit, names in sorted(found.items())]


def _config(config: ConfigReport | None, text: Text) -> dict[str, Any]:
    assert config is not None  # a table makes no value for None
    output = output_tile(config.cta_tile, config.fusion)
    return {**_plain(config, text), "output_tile": output}


def _footprint(footprint: Footprint | None, text: Text) -> dict[str, Any]:
    assert footprint is not None  # as above
    plain = _plain(msgspec.structs.replace(footprint, regions=()), text)
    left = footprint.budget.left if footprint.budget is not None else None
    return {**plain, "left": left, "regions": [_region(each, text) for each in footprint.regions]}


def _plain(record: msgspec.Struct, text: Text) -> dict[str, Any]:
    """A record's fields, with texts by number."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return {name: text(value) if isinstance(value, str) else value for name, value in plain.items()}


def _region(region: Region, text: Text) -> list[Any]:
    return [
        text(region.name),
        text(region.kind),
        text(_PARTS.get(region.kind, "overhead")),
        region.offset,
        region.size,
    ]


def _locations(places: Sequence[Location], text: Text) -> list[list[int]]:
    starts = [(each.file, each.range.start, each.message) for each in places]
    return [[text(file), at.line + 1, at.character + 1, text(message)] for file, at, message in starts]


def _finding(finding: Finding, text: Text) -> dict[str, Any]:
    return {
        "rule": text(finding.rule),
        "severity": text(finding.severity),
        "message": text(finding.message),
        "detail": text(finding.detail),
        "fixes": [text(fix.title) for fix in finding.fixes],
        "suppressed": -1
        if finding.suppressed is None
        else text(f"{finding.suppressed.kind}: {finding.suppressed.reason}"),
    }


def _link(whole: str) -> str:
    return PurePosixPath(whole).as_uri() if whole.startswith("/") else ""
