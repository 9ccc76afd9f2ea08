"""The report as JUnit's XML, for Jenkins and other CI that shows tests: a suite for each rule, a test for each finding.

What fails here is what makes the exit code 1; findings below ``--fail-on`` pass and say what they have to say, those that do
not count are left out. The elements and attributes are those of junit-10.xsd of Jenkins' xunit plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cutlint.printable import printable
from cutlint.records import Finding
from cutlint.report import Report
from cutlint.settings import fails
from cutlint.wording import advice, headline, place, seen


def render(report: Report) -> str:
    """The document: first a suite of what had to be done at all, then one a rule, in the order of the report."""
    names = {rule.id: f"{rule.id} {rule.name}: {rule.summary}" for rule in report.rules}
    counted = [each for each in report.findings if each.suppressed is None]
    names |= {each.rule: each.rule for each in counted if each.rule not in names}
    by_rule: dict[str, list[Finding]] = {rule: [] for rule in names}
    for each in counted:
        by_rule[each.rule].append(each)
    suites = [_suite("cutlint", _run(report.errors))]
    suites += [_suite(names[rule], _tests(rule, found, report)) for rule, found in by_rule.items()]
    root = Element("testsuites", name="cutlint")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(name: str, tests: Iterable[Element]) -> Element:
    suite = Element("testsuite", name=printable(name))
    suite.extend(tests)
    for attribute, path in (("tests", "."), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(test.find(path) is not None for test in suite)))
    return suite


def _run(errors: Sequence[str]) -> list[Element]:
    """A test that the whole job was done, or one for each thing that was not."""
    if not errors:
        return [_test("cutlint", "everything named was checked")]
    tests = []
    for error in errors:
        test = _test("cutlint", error)
        SubElement(test, "error", type="error", message=printable(error))
        tests.append(test)
    return tests


def _tests(rule: str, findings: Sequence[Finding], report: Report) -> list[Element]:
    """The tests of one rule. Names are without lines, so that a CI knows a test again."""
    names: Counter[str] = Counter()
    tests = []
    for each in findings:
        name = f"{each.file}: {each.subject or each.message}"
        names[name] += 1
        test = _test(rule, name if names[name] == 1 else f"{name} ({names[name]})")
        text = "\n".join([f"{place(each)}: {headline(each)}", *advice(each), *seen(each)])
        if fails([each], report.fail_on):
            SubElement(test, "failure", type=each.severity, message=headline(each)).text = text
        else:
            SubElement(test, "system-out").text = f"{each.severity}: {text}"
        tests.append(test)
    return tests or [_test(rule, "nothing found")]


def _test(rule: str, name: str) -> Element:
    return Element("testcase", classname=printable(f"cutlint.{rule}"), name=printable(name))
