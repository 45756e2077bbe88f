"""A report in a real browser: offline, by light and dark, on paper, with scripts and without."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from panda_spark import report
from tests.spark.report import runs

FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TIMEOUT_MS = 90_000  # the machine may be busy


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "chromium is missing: make packages"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=TIMEOUT_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write(runs.rich(), tmp_path_factory.mktemp("rich"))


class Opened:
    """A page with everything that it complained about and asked for."""

    def __init__(self, browser: Browser, path: Path, **options: object) -> None:
        context = browser.new_context(viewport={"width": 1180, "height": 900}, **options)  # type: ignore[arg-type]
        context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def enliven(self) -> None:
        """Make the window as high as the page, so that every figure is seen and answers."""
        width = self.page.evaluate("innerWidth")
        height = self.page.evaluate("document.documentElement.scrollHeight")
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_selector("figure:not(.alive)", state="detached")


@pytest.fixture
def opening(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens a page; when the test ends, it is closed again."""
    pages: list[Page] = []

    def opened(path: Path, **options: object) -> Opened:
        found = Opened(browser, path, **options)
        pages.append(found.page)
        return found

    yield opened
    for page in pages:
        page.context.close()


def test_the_page_is_silent_asks_for_nothing_and_shows_every_figure(
    opening: Callable[..., Opened], rich: Path
) -> None:
    opened = opening(rich)
    opened.enliven()
    page = opened.page
    assert page.locator("figure").count() >= 18
    assert page.locator("figure .live svg").count() == page.locator("figure").count()
    assert page.locator("figure .still:visible").count() == 0
    assert opened.complaints == []
    assert opened.asked == [rich.as_uri()]


def test_hostile_texts_stay_texts(opening: Callable[..., Opened], tmp_path: Path) -> None:
    opened = opening(report.write(runs.hostile(), tmp_path))
    opened.enliven()
    assert opened.complaints == []
    assert len(opened.asked) == 1
    assert opened.page.locator("h1").text_content() == runs.HOSTILE
    assert opened.page.locator("img").count() == 0


def test_without_scripts_every_figure_is_there(opening: Callable[..., Opened], rich: Path) -> None:
    page = opening(rich, java_script_enabled=False).page
    assert page.locator("figure .still svg:visible").count() == page.locator("figure").count()
    assert page.locator(".tool:visible").count() == 0


@pytest.mark.parametrize(("scheme", "light_ground"), [("light", True), ("dark", False)])
def test_text_and_ground_follow_the_readers_scheme(
    opening: Callable[..., Opened], rich: Path, scheme: str, light_ground: bool
) -> None:
    opened = opening(rich, color_scheme=scheme)
    opened.enliven()

    def bright(selector: str, property_: str) -> bool:
        found = opened.page.locator(selector).first.evaluate(f"each => getComputedStyle(each).{property_}")
        return sum(float(part) for part in re.findall(r"[\d.]+", found)[:3]) > 3 * 128

    assert bright("html", "backgroundColor") is light_ground
    assert bright("h1", "color") is not light_ground
    assert bright("#figure-hops .still svg > rect", "fill") is light_ground
    assert bright("#figure-hops .live svg text", "fill") is not light_ground


def test_paper_gets_whole_still_pictures_in_light_colours(opening: Callable[..., Opened], rich: Path) -> None:
    opened = opening(rich, color_scheme="dark")
    opened.enliven()
    pages = re.findall(rb"/Type\s*/Page\b", opened.page.pdf(prefer_css_page_size=True))
    assert 3 <= len(pages) <= 20
    opened.page.emulate_media(media="print")
    assert opened.page.locator("figure .still svg:visible").count() == opened.page.locator("figure").count()
    assert opened.page.locator(".live:visible, .tool:visible, nav:visible").count() == 0
    ground = opened.page.locator("html").evaluate("each => getComputedStyle(each).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_a_narrow_screen_does_not_scroll_sideways(opening: Callable[..., Opened], rich: Path) -> None:
    opened = opening(rich)
    opened.page.set_viewport_size({"width": 390, "height": 800})
    opened.enliven()
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_column_sorts_by_its_values_up_and_down(opening: Callable[..., Opened], rich: Path) -> None:
    page = opening(rich).page
    table = page.locator("details[data-name='load.csv']")
    table.locator("summary").click()
    broker = table.locator("th button", has_text=re.compile("^broker$"))
    memory = table.locator("th button", has_text="memory")

    def first() -> str | None:
        return table.locator("tbody tr td").first.text_content()

    memory.click()
    assert first() == "B1"
    memory.click()
    assert first() == "B7"
    broker.click()
    assert first() == "B1"
    assert table.locator("th[aria-sort=ascending]").text_content() == "broker"


def downloaded(page: Page, selector: str) -> list[list[str]]:
    with page.expect_download() as download:
        page.locator(selector).click()
    return list(csv.reader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"), newline="")))


def test_a_table_and_a_figure_come_as_csv_without_formulas(
    opening: Callable[..., Opened], tmp_path: Path
) -> None:
    data = runs.rich(4, 30)
    lost = [{"verdict": "lost", "publication": '=HYPERLINK("x"),1', "published_s": -1.5}]
    late = [{"by": "class", "key": "@SUM(A1)", "p50_s": 0.1, "p95_s": 0.2, "p99_s": 0.3, "count": 1}]
    tables = {**data.tables, "deliveries": lost, "latency": late}
    page = opening(report.write(report.RunData("=1+1", tables), tmp_path)).page
    rows = downloaded(page, "details[data-name='deliveries.csv'] [data-do=csv]")
    assert rows == [["verdict", "publication", "published"], ["lost", '\'=HYPERLINK("x"),1', "-1.5"]]
    figure = downloaded(page, "#figure-latency-class [data-do=data]")
    assert figure[1][0] == "'@SUM(A1)"


def test_one_moment_is_shown_in_all_figures_of_time_and_dragging_looks_closer(
    opening: Callable[..., Opened], rich: Path
) -> None:
    opened = opening(rich)
    opened.enliven()
    page = opened.page
    live = page.locator("#figure-throughput .live")
    live.scroll_into_view_if_needed()
    box = live.bounding_box()
    assert box
    page.mouse.move(box["x"] + 400, box["y"] + 60)
    assert page.locator("#figure-lives .cursor:visible").count() == 1
    assert page.locator("#figure-latency-time .cursor:visible").count() == 1
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.up()
    whole = page.locator("[data-do=unzoom]")
    whole.wait_for(state="visible")
    labels = page.locator("#figure-lives .live .role-axis-label text")
    page.wait_for_selector("#figure-lives .live >> text=/^4\\d/")
    assert "120 s" not in labels.all_text_contents()
    whole.click()
    page.wait_for_selector("#figure-lives .live >> text=120 s")
    assert opened.complaints == []


def test_a_tooltip_says_what_is_under_the_mouse_as_text(opening: Callable[..., Opened], rich: Path) -> None:
    opened = opening(rich)
    opened.enliven()
    opened.page.locator("#figure-hops .live .mark-rect path").first.hover()
    assert "deliveries" in (opened.page.locator("#tip").text_content() or "")


def test_a_comparison_is_as_silent(opening: Callable[..., Opened], tmp_path: Path) -> None:
    opened = opening(report.write_comparison(runs.comparison(), tmp_path))
    opened.enliven()
    assert opened.page.locator("figure .live svg").count() >= 6
    assert opened.complaints == []
    assert len(opened.asked) == 1
