"""A baseline: the findings that were known when it was written, so that a later run counts the new ones only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from cutlint import files
from cutlint.errors import CutlintError
from cutlint.printable import json_document
from cutlint.records import Finding, Suppression

VERSION = 1
MAX_BYTES = 256 * 2**20


class Known(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A finding of a baseline. The fingerprint tells it again; the rest is for people who read the file."""

    rule: str
    file: str
    subject: str
    fingerprint: str


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a baseline file."""

    version: int
    findings: tuple[Known, ...]


def of(findings: Sequence[Finding]) -> Baseline:
    """The baseline that knows every one of `findings` that counts."""
    known = {_known(each) for each in findings if each.suppressed is None}
    return Baseline(VERSION, tuple(sorted(known)))


def _known(each: Finding) -> Known:
    return Known(each.rule, each.file, each.subject, each.fingerprint)


def write(path: Path, baseline: Baseline) -> None:
    """Put the baseline into a file, replaced at once; the same bytes for the same findings.

    Raises:
        CutlintError: when it cannot be written.
    """
    files.write(path, json_document(baseline))


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        CutlintError: when it cannot be read or is none, with what to do.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CutlintError(f"{path} is too large for a baseline (more than {MAX_BYTES:,} bytes)")
        data = path.read_bytes()
    except OSError as error:
        hint = "; --write-baseline makes one" if isinstance(error, FileNotFoundError) else ""
        raise CutlintError(f"{path} cannot be read: {error.strerror or error}{hint}") from None
    again = "make it again with --write-baseline"
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            message = f"{path} is a baseline of version {version}, and this cutlint reads version {VERSION}; {again}"
            raise CutlintError(message)
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CutlintError(f"{path} is not a baseline: {error}; {again}") from None


class _Version(msgspec.Struct):
    version: int


def apply(
    findings: Sequence[Finding], baseline: Baseline, applied: Sequence[str]
) -> tuple[list[Finding], tuple[Known, ...]]:
    """The findings, the known ones marked so, and the entries of rules `applied` that no finding of the run is."""
    known = {each.fingerprint for each in baseline.findings}
    seen = {each.fingerprint for each in findings}
    mark = Suppression("baseline")
    marked = [
        msgspec.structs.replace(each, suppressed=mark)
        if each.suppressed is None and each.fingerprint in known
        else each
        for each in findings
    ]
    gone = tuple(each for each in baseline.findings if each.fingerprint not in seen and each.rule in applied)
    return marked, gone
