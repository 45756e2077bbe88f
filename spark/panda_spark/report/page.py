"""Decides what stands where in a report and writes its files; what a figure shows is decided elsewhere."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from markupsafe import Markup

from panda_spark.report import comparison, distribution, network, samples, timeline
from panda_spark.report.data import ComparisonData, RunData, count
from panda_spark.report.figure import Absent, Figure
from panda_spark.report.palette import DARK, LIGHT, themed_spec
from panda_spark.report.rendering import Draw, here, on_page, png, replace, vega_script
from panda_spark.report.sentences import (
    Headline,
    comparison_sentence,
    fault_sentence,
    headlines,
    named,
    problems,
    run_sentence,
)
from panda_spark.report.tables import Entry, Table, provenance, run_tables
from panda_spark.report.words import listed, short

ASSETS = Path(__file__).parent / "assets"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is a formula to a spreadsheet


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    title: str
    figures: Sequence[Figure | Absent] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[tuple[str, str]] = ()  # a name and what is said of it
    entries: Sequence[Entry] = ()
    said: str = ""
    hint: str = ""  # how to use the figures, where there are scripts

    @property
    def empty(self) -> bool:
        figures = any(isinstance(each, Figure) for each in self.figures)
        return not (figures or self.tables or self.notes or self.entries or self.said)

    @property
    def absent(self) -> list[Absent]:
        """Why figures are missing; those that are missing for one reason are named together."""
        titles: dict[str, list[str]] = {}
        for each in self.figures:
            if isinstance(each, Absent):
                titles.setdefault(each.why, []).append(each.title)
        return [Absent(listed(names), why) for why, names in titles.items()]


@dataclass(frozen=True, slots=True)
class Page:
    kind: str
    title: str
    sentence: str
    problems: Sequence[str] = ()
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = field(default=())

    @property
    def shown(self) -> list[Section]:
        return [section for section in self.sections if not section.empty]

    @property
    def absent(self) -> list[Absent]:
        """What is missing with its whole section."""
        missing = [each for section in self.sections if section.empty for each in section.figures]
        return Section("", "", missing).absent


def write(data: RunData, folder: Path, draw: Draw = here) -> Path:
    """Write the report of a run into the folder; gives back the page."""
    return _write(_run_page(data), folder, draw)


def write_comparison(data: ComparisonData, folder: Path, draw: Draw = here) -> Path:
    """Write the report of two groups of runs into the folder; gives back the page."""
    return _write(_comparison_page(data), folder, draw)


def _run_page(data: RunData) -> Page:
    axis = timeline.TimeAxis(data)
    tables = run_tables(data)

    def some(*names: str) -> list[Table]:
        return [tables[name] for name in names if name in tables]

    by = ("class", "subscriber", "broker", "publisher")
    told = [(named(row), fault_sentence(row)) for row in data.rows("faults")[:24]]
    sections = (
        Section(
            "time",
            "Over time",
            (
                timeline.latency(data, axis),
                timeline.throughput(data, axis),
                timeline.lives(data, axis),
                samples.detections(data, axis),
            ),
            some("marks", "links", "processes", "detections"),
            hint="Drag along a figure to look closer at all of them.",
        ),
        Section(
            "delivery",
            "Delivery",
            (distribution.verdicts(data, "subscriber"), distribution.verdicts(data, "class")),
            some("deliveries", "verdicts"),
        ),
        Section("faults", "Faults", (distribution.faults(data),), some("faults"), notes=told),
        Section(
            "latency",
            "Latency",
            (
                distribution.histogram(data),
                distribution.hops(data),
                *(distribution.percentiles(data, each) for each in by),
            ),
            some("latency"),
        ),
        Section(
            "network",
            "Brokers",
            (network.topology(data), network.load(data), *samples.sampled(data, axis)),
            some("spread", "load"),
        ),
        Section(
            "schedule",
            "Schedule and clocks",
            (distribution.schedule(data), distribution.clocks(data)),
            some("schedule", "clocks"),
        ),
        Section("logs", "Logs", (), some("missing", "quarantine"), said=_logs(data)),
        Section("provenance", "Provenance", entries=provenance(data.provenance)),
    )
    return Page(
        "Run",
        short(data.run, 200) or "(unnamed run)",
        run_sentence(data),
        problems(data),
        headlines(data),
        sections,
    )


def _logs(data: RunData) -> str:
    summary = data.first("summary")
    bad = data.rows("missing") or data.rows("quarantine")
    if not summary or bad or count(summary, "missing") or count(summary, "quarantined"):
        return ""
    return "Every log came home, and every line of them could be read."


def _comparison_page(data: ComparisonData) -> Page:
    sections = (
        Section("differences", "Differences", (comparison.intervals(data),), [comparison.metric_table(data)]),
        Section("runs", "Runs", comparison.dots(data), [comparison.run_table(data)]),
        Section("latency", "Latency", (comparison.latencies(data),)),
        Section("provenance", "Provenance", entries=provenance(data.provenance)),
    )
    return Page(
        "Comparison",
        short(data.name, 200) or "(unnamed comparison)",
        comparison_sentence(data),
        [short(note, 500) for note in data.notes],
        comparison.headlines(data),
        sections,
    )


def _write(page: Page, folder: Path, draw: Draw) -> Path:
    figures = [each for section in page.sections for each in section.figures if isinstance(each, Figure)]
    pictured = folder / "figures"
    pictured.mkdir(parents=True, exist_ok=True)
    svgs: dict[str, str] = {}
    written = set()
    for figure, svg in zip(figures, draw(each.spec for each in figures), strict=True):
        # While the next one is being drawn.
        svgs[figure.name] = on_page(figure, svg)
        spec = json.dumps(figure.spec, ensure_ascii=False, indent=1)
        for ending, content in (
            ("png", png(svg)),
            ("json", spec.encode()),
            ("csv", csv_text(figure.rows).encode()),
        ):
            replace(pictured / f"{figure.name}.{ending}", content)
            written.add(f"{figure.name}.{ending}")
    path = folder / "report.html"
    replace(path, _html(page, svgs).encode())
    for left in sorted(pictured.iterdir()):  # of an earlier report, whose figure is not there any more
        if left.suffix in {".png", ".json", ".csv"} and left.name not in written:
            left.unlink()
    return path


def csv_text(rows: Sequence[dict[str, object]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_csv_cell(column) for column in columns])
    writer.writerows([_csv_cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue()


def _csv_cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _html(page: Page, svgs: dict[str, str]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    script = (ASSETS / "page.js").read_text(encoding="utf-8")
    scripts = [vega_script(), script] if svgs else [script]
    return environment.get_template("page.html.j2").render(
        page=page,
        figures=lambda section: [each for each in section.figures if isinstance(each, Figure)],
        svg=lambda figure: Markup(svgs[figure.name]),  # noqa: S704 -- Vega escapes the texts in it; a test holds it to that
        spec=lambda figure: inert_json(themed_spec(figure.spec)),
        # The scripts and the sheet are ours and are no place for a row of a table.
        style=Markup((ASSETS / "page.css").read_text(encoding="utf-8")),  # noqa: S704
        scripts=[Markup(each) for each in scripts],  # noqa: S704
        hashes=[_hash(each) for each in scripts],
        light=LIGHT,
        dark=DARK,
    )


def inert_json(value: object) -> Markup:
    """JSON that can stand inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


def _hash(script: str) -> str:
    """What the page's policy names a script by: no other runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
