"""The HTML report as a person opens it: in Chromium, from a file, with no network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import CHECKOUT
from playwright.sync_api import Browser, Page, sync_playwright
from reports import finding, report
from test_cli import cutlint
from test_hostile import HOSTILE, reported

from cutlint import run
from cutlint.formats.html import render
from cutlint.printable import printable
from cutlint.records import Suppression
from cutlint.report import Report, TargetReport
from cutlint.settings import Found, Settings
from cutlint.sources import Request

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTH = 1300


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM.exists(), "these tests open the page in a browser: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


class Opened:
    """A page, with what it asked for and complained of."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page, self.path = page, path
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, fragment: str = "") -> Page:
        self.page.goto("about:blank")
        self.requests.clear()
        self.page.goto(self.path.as_uri() + fragment)
        return self.page


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a report's page. Afterwards: nothing was asked for but the page itself, and the console is empty."""
    all_of_them: list[Opened] = []

    def open_page(text: str, **how: Any) -> Opened:
        path = tmp_path / f"report-{len(all_of_them)}.html"
        path.write_text(text)
        context = chromium.new_context(viewport={"width": WIDTH, "height": 900}, **how)
        all_of_them.append(Opened(context.new_page(), path))
        all_of_them[-1].go()
        return all_of_them[-1]

    yield open_page
    for each in all_of_them:
        assert {url.partition("#")[0] for url in each.requests} == {each.path.as_uri()}, "a request"
        assert each.complaints == []
        each.page.context.close()


@pytest.fixture(scope="module")
def checkout() -> Report:
    """The report of the small checkout: 32 instantiations for Sm120, 4 of them over the limit."""
    request = Request(sources=(str(CHECKOUT),), generate=True, regions=True, cwd=CHECKOUT)
    return run.check(request, Found(Settings(), CHECKOUT), everything=True).report


@pytest.fixture(scope="module")
def text(checkout: Report) -> str:
    return render(checkout)


def rows(page: Page) -> list[list[str]]:
    """The cells of the rows shown, as text."""
    found: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('#table tr.row')].map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found


def totals(page: Page) -> list[int]:
    return [int(re.sub(r"\D", "", row[6])) for row in rows(page)]


def test_the_command_writes_it(tmp_path: Path) -> None:
    """Every instantiation is in it, also without --all, and the same input gives the same bytes."""
    out = [tmp_path / "a.html", tmp_path / "b.html"]
    for path in out:
        assert cutlint("check", "--generate", "--format", "html", "-o", path).returncode == 1
    assert out[0].read_bytes() == out[1].read_bytes()
    assert out[0].read_text().count("<!DOCTYPE html>") == 1


def test_the_verdict_is_at_the_top(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    assert page.locator("h1").inner_text() == "cutlint: 4 errors, 1 warning, 6 notes"
    first = page.locator(".verdicts li").first.inner_text()
    assert first.startswith("12.0 rtx-pro-6000")
    assert "4 of 32 instantiations will not launch: up to 1,024 B over the 101,376 B a block may have" in first
    assert "2 sit exactly at the limit and run" in first
    assert page.locator("#shown").inner_text() == "32 of 32 instantiations in 8 groups"
    assert rows(page)[0][0].startswith("will not launch"), "the riskiest first"


def test_filter(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    page.select_option("#filter-verdict", "over")
    assert [(row[1], row[2], row[3], row[6]) for row in rows(page)] == [
        ("128×256×128", "FINALIZE", "false", "102,400 B"),
        ("128×256×128", "FINALIZE", "false", "102,400 B"),
        ("256×128×128", "FINALIZE", "false", "102,400 B"),
        ("256×128×128", "FINALIZE", "false", "102,400 B"),
    ]
    page.select_option("#filter-types", "FP4×FP4→BF16")
    assert len(rows(page)) == 2
    page.fill("#filter-q", "256x128x128 cut101")
    assert [row[1] for row in rows(page)] == ["256×128×128"]
    page.fill("#filter-q", "no such thing")
    assert rows(page) == []
    assert page.locator("#shown").inner_text() == "0 of 32 instantiations in 0 groups"
    page.click("#reset")
    assert len(rows(page)) == 32
    assert "#" not in page.url
    page.select_option("#filter-swap", "true")
    page.select_option("#filter-fusion", "NONE")
    page.select_option("#filter-arch", "Sm120")
    assert {(row[2], row[3]) for row in rows(page)} == {("NONE", "true")}
    assert len(rows(page)) == 8


def test_sort(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    page.select_option("#filter-types", "FP4×FP4→FP16")
    button = page.get_by_role("button", name="Shared memory")
    button.click()
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert totals(page)[0] == 74752
    assert button.evaluate("each => each === document.activeElement"), "the keyboard stays where it was"
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    shown = totals(page)
    assert shown[0] == 102400
    groups = [shown[at : at + 4] for at in range(0, 16, 4)]
    assert all(group == sorted(group, reverse=True) for group in groups)
    assert [group[0] for group in groups] == sorted((group[0] for group in groups), reverse=True)


def test_the_detail(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    page.select_option("#filter-verdict", "over")
    page.focus("#table tr.row button")
    page.keyboard.press("Enter")
    card = page.locator("tr.detail")
    said = card.inner_text()
    # From the launcher's own text and the compiler (DESIGN: 3 stages of 27,648 and 16,896 of epilogue in 102,400).
    for expected in (
        "1,024 B over the limit of 101,376 B on 12.0 and 12.1",
        "StageCountAutoCarveout<17408>",
        "(101,376 B capacity − 432 B reserved − 17,408 B carveout) ÷ 27,776 B a stage = 3 stages, 208 B left",
        "the stage count is decided here",
        "moe_gemm_tma_ws_launcher.inl:74:7",
        "27,648 B: one stage",
        "82,944 B: 3 stages",
        "131,072 B: the whole output tile",
        "158,720 B",
        "SwapAB=true: 2 stages, 74,752 B",
        "StageCount<2>: 2 stages, 74,752 B",
    ):
        assert expected in said, expected
    link = card.locator("a").first
    assert (link.get_attribute("href") or "").endswith("moe_gemm_tma_ws_launcher.inl")
    regions: list[list[str]] = card.locator(".regions tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    sizes = [int(size.replace(",", "")) for _, size, _ in regions]
    assert sum(sizes) == 102400
    assert [int(offset.replace(",", "")) for offset, _, _ in regions] == [sum(sizes[:at]) for at in range(len(sizes))]
    figure = card.locator("svg.map")
    assert "limit 101,376 B: 1,024 B over" in figure.text_content()
    assert figure.locator("line.stage").count() == 2 * 4, "three stages of A, B, SFA and SFB"
    assert figure.locator("rect.excess").count() == 1
    assert page.locator("tr.row button[aria-expanded=true]").evaluate("each => each === document.activeElement")
    page.keyboard.press("Enter")
    assert page.locator("tr.detail").count() == 0


def test_the_url_restores_the_page(opened: Callable[..., Opened], text: str) -> None:
    first = opened(text)
    page = first.page
    page.select_option("#filter-tile", "128×256×128")
    page.fill("#filter-q", "bf16")
    page.get_by_role("button", name="Stages").click()
    page.locator("tr.row button").first.click()
    before, url = rows(page), page.url
    assert "tile=" in url
    page = first.go("#" + url.partition("#")[2])
    assert rows(page) == before
    assert page.input_value("#filter-q") == "bf16"
    assert page.input_value("#filter-tile") == "128×256×128"
    assert page.locator("tr.detail").count() == 1
    assert page.locator("th[aria-sort] button").get_attribute("data-sort") == "stages"
    page.evaluate("location.hash = '#verdict=limit'")
    page.wait_for_function("document.querySelectorAll('#table tr.row').length === 2")
    for nonsense in ("#sort=__proto__&open=99999,x,-1&verdict=nothing", "#%%%&q=%ff&order=sideways"):
        first.go(nonsense)


def test_the_heat_map(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    over = page.locator("#maps td.heat-over button")
    assert [each.inner_text() for each in over.all()] == ["−1.0"] * 4
    assert page.locator("#maps td.heat-limit button").all_inner_texts() == ["0", "0"]
    over.first.click()
    shown = rows(page)
    assert len(shown) == 1
    assert shown[0][6] == "102,400 B"


def test_it_is_a_table_for_screen_readers(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    assert page.get_by_role("columnheader").count() > 8
    assert page.get_by_role("rowheader").count() > 0
    assert page.get_by_role("combobox", name="Verdict").count() == 1
    assert page.get_by_role("searchbox", name="Text").count() == 1
    assert page.get_by_role("status").inner_text().startswith("32 of 32")
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button')].filter(each => !each.innerText.trim() && !each.ariaLabel).length"
    )
    assert unnamed == 0
    page.locator("tr.row button").first.click()
    controlled = page.locator("tr.row button").first.get_attribute("aria-controls")
    assert page.locator(f"#{controlled}").is_visible()
    assert page.locator("svg.map").get_attribute("role") == "img"
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened: Callable[..., Opened], text: str, scheme: str) -> None:
    """Text has the contrast that WCAG 2.2 asks for (4.5 to 1) where it says what is the matter."""
    page = opened(text, color_scheme=scheme).page
    pairs = page.evaluate(
        """() => ['body', 'h1', '.verdicts li.over', '.verdicts li.over small', 'tr.row.over button', 'tr.row td', 'tr.head .arch',
        '.badge.error', '.badge.warning', '.badge.note', '.why', '.heat-over button', '.heat-limit button', '.heat-h2 button', '.heat-h4 button', 'a']
        .map(name => { const found = document.querySelector(name); if (!found) return [name, null, null];
          let under = found; while (getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;
          return [name, getComputedStyle(found).color, getComputedStyle(under).backgroundColor]; })"""
    )

    page.locator("tr.row button").first.click()
    pairs += page.evaluate(
        """() => [...document.querySelectorAll('svg.map .label')].map(label =>
          [label.textContent, getComputedStyle(label).fill, getComputedStyle(label.previousSibling).fill])"""
    )

    def luminance(color: str) -> float:
        parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
        red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert sum(color is not None for _, color, _ in pairs) >= 12 + 5
    for name, color, under in pairs:
        if color is not None:
            dark, light = sorted((luminance(color), luminance(under)))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, color, under)
    assert (luminance(pairs[0][1]) > luminance(pairs[0][2])) == (scheme == "dark")


def test_without_scripts(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text, java_script_enabled=False).page
    assert "will not launch" in page.locator(".verdicts").inner_text()
    assert page.locator("#instantiations").is_hidden()
    said = page.locator("table.findings").inner_text()
    assert "needs 102,400 B of shared memory per block" in said
    assert "Sm120 FP4×FP4→FP16 128×256×128 FINALIZE SwapAB=false" in said
    assert "SwapAB=true: 2 stages, 74,752 B" in said


def test_it_prints(opened: Callable[..., Opened], text: str) -> None:
    page = opened(text).page
    page.emulate_media(media="print")
    assert page.locator("#filters").is_hidden()
    assert page.locator(".verdicts").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_no_script_but_its_own_runs(opened: Callable[..., Opened], text: str) -> None:
    """The policy holds even for a page that somebody wrote a script into."""
    changed = text.replace("<main>", "<main><script>document.title = 'run'</script><b onclick='0' style='top: 0'></b>")
    assert changed != text
    page = opened(changed)
    assert page.page.title().startswith("cutlint:")
    assert len(page.complaints) >= 2
    assert all("Content Security Policy" in each for each in page.complaints)
    page.complaints.clear()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(opened: Callable[..., Opened], name: str) -> None:
    page = opened(render(reported(name))).page
    page.fill("#filter-q", printable(name)[:8])
    page.locator("tr.row button").first.click()
    said = page.locator("tr.detail").text_content() or ""
    assert f"ElementType_={printable(name)}" in said
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("script").count() == 2
    hrefs = page.evaluate("[...document.querySelectorAll('a')].map(each => each.protocol)")
    assert set(hrefs) <= {"file:"}


def many(source: Report, number: int) -> Report:
    """`source` with `number` instantiations, every one with a configuration, a footprint and regions of its own."""
    made = []
    for at in range(number):
        each = source.instantiations[at % len(source.instantiations)]
        assert each.config is not None
        assert each.footprint is not None
        m, n, k = each.config.cta_tile
        config = msgspec.structs.replace(each.config, cta_tile=(m, n + 8 * (at // 320), k))
        shift = at // len(source.instantiations)
        regions = tuple(
            msgspec.structs.replace(region, offset=region.offset + shift) for region in each.footprint.regions
        )
        footprint = msgspec.structs.replace(each.footprint, total=(each.footprint.total or 0) - shift, regions=regions)
        place = msgspec.structs.replace(each.range.start, line=at)
        made.append(
            msgspec.structs.replace(
                each,
                file=f"gemm/{at // 8:05}/{each.file}",
                range=msgspec.structs.replace(each.range, start=place),
                config=config,
                footprint=footprint,
            )
        )
    return msgspec.structs.replace(source, instantiations=tuple(made))


def test_3400_instantiations(opened: Callable[..., Opened], checkout: Report) -> None:
    text = render(many(checkout, 3400))
    assert len(text.encode()) < 5_000_000
    page = opened(text).page
    assert page.locator("#shown").inner_text().startswith("3,400 of 3,400 instantiations")
    page.fill("#filter-q", "128x32x128 bf16 finalize")
    assert page.locator("#shown").inner_text().startswith("212 of 3,400 "), "2 of each 32"
    page.locator("button.group").first.click()
    assert len(rows(page)) >= 2
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"{len(text.encode()):,} B, loaded in {loaded:.0f} ms")


def test_what_is_not_known_is_said(opened: Callable[..., Opened], checkout: Report) -> None:
    first, second, third, *rest = checkout.instantiations
    assert second.footprint is not None
    refused = msgspec.structs.replace(
        second.footprint, total=None, stages=None, regions=(), refused="Stages must be 2 or more"
    )
    nvcc = msgspec.structs.replace(second.footprint, fails_in_nvcc="M must be 128")
    changed = msgspec.structs.replace(
        checkout,
        instantiations=(
            msgspec.structs.replace(first, config=None, footprint=None, unknown="no model of it yet"),
            msgspec.structs.replace(second, footprint=refused),
            msgspec.structs.replace(third, footprint=nvcc),
            *rest,
        ),
        summary=msgspec.structs.replace(checkout.summary, not_sized=1, unread=3, unread_files=2),
        errors=("other: no such folder",),
    )
    page = opened(render(changed)).page
    verdicts = page.locator(".verdicts").inner_text()
    assert "2 do not compile" in verdicts
    assert "Not sized: 1 instantiation" in verdicts
    assert "Not read: 2 files, and 3 invocations in the others" in verdicts
    assert "other: no such folder" in page.locator(".notdone").inner_text()
    page.select_option("#filter-verdict", "refused")
    for at, reason in enumerate(("Stages must be 2 or more", "M must be 128")):
        page.locator("tr.row button").nth(at).click()
        assert reason in page.locator("tr.detail").nth(at).inner_text()
    page.click("#reset")
    page.select_option("#filter-verdict", "unknown")
    page.locator("tr.row button").first.click()
    assert "Not sized: no model of it yet" in page.locator("tr.detail").inner_text()


def test_suppressed_and_clean(opened: Callable[..., Opened]) -> None:
    hidden = finding(suppressed=Suppression("inline", "known"))
    page = opened(render(report(hidden))).page
    assert page.locator("h1").inner_text() == "cutlint: no findings"
    assert "suppressed, inline: known" in page.locator("table.findings").inner_text()
    page = opened(render(report())).page
    assert page.locator("#findings p").first.inner_text() == "None."


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (102399, "4 of 32 instantiations will not launch: up to 1 B over the 102,399 B a block may have."),
        (
            102400,
            "no instantiation is over the limit; 4 of 32 instantiations take all of the 102,400 B a block may have, and run.",
        ),
        (102401, "all 32 instantiations fit the 102,401 B a block may have, with 1 B left at least."),
    ],
)
def test_one_sentence_a_target(checkout: Report, limit: int, said: str) -> None:
    """Exactly at the limit runs, a byte above does not."""
    target = TargetReport("sm_120", "12.0", limit, ("Sm120",), ())
    assert f"<b>12.0</b>: {said}" in render(msgspec.structs.replace(checkout, targets=(target,)))


def test_a_kernel_too_large_for_some(opened: Callable[..., Opened], checkout: Report) -> None:
    """Over all GPUs the least limit counts, with one chosen its own; a launcher that looks at the limit passes over from the
    limit on, and nothing fails."""
    targets = (
        TargetReport("sm_120", "12.0", 101376, ("Sm120",), ()),
        TargetReport("sm_200", "20.0", 102400, ("Sm120",), ()),
    )
    page = opened(render(msgspec.structs.replace(checkout, targets=targets))).page
    page.select_option("#filter-verdict", "partly")
    assert totals(page) == [102400] * 4
    page.locator("tr.row button").first.click()
    said = page.locator("tr.detail").inner_text()
    assert "1,024 B over the limit of 101,376 B on 12.0; 0 B left under the limit of 102,400 B on 20.0" in said
    page.click("#reset")
    page.select_option("#filter-gpu", "20.0")
    page.select_option("#filter-verdict", "limit")
    assert totals(page) == [102400] * 4
    page.select_option("#filter-gpu", "12.0")
    assert totals(page) == [101376] * 2
    passing = tuple(msgspec.structs.replace(each, skipped=True) for each in checkout.instantiations)
    text = render(msgspec.structs.replace(checkout, targets=targets[:1], instantiations=passing))
    assert "26 of 32 instantiations fit" in text
    page = opened(text).page
    page.select_option("#filter-verdict", "skipped")
    assert sorted(totals(page)) == [101376] * 2 + [102400] * 4


def test_a_target_that_runs_none_of_it(checkout: Report) -> None:
    target = TargetReport("sm_90", "9.0", 232448, ("Sm90",), ())
    assert "<b>9.0</b>: none of the instantiations listed is for it." in render(
        msgspec.structs.replace(checkout, targets=(target,))
    )
