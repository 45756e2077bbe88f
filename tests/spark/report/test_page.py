"""The files of a report: complete, the same for the same rows, and safe whatever the logs say."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from panda_spark import report
from panda_spark.report import RunData, page, rendering
from panda_spark.report.data import WANTED
from tests.spark.report import runs
from tests.spark.report.markup import assert_inert, tags


def test_a_report_has_its_page_and_three_files_for_each_figure(tmp_path: Path) -> None:
    path = report.write(runs.rich(), tmp_path)
    assert path == tmp_path / "report.html"
    names = [attributes["data-name"] for tag, attributes in tags(path) if tag == "figure"]
    assert len(names) >= 18
    for name in names:
        assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert json.loads((tmp_path / "figures" / f"{name}.json").read_text())["datasets"]["rows"]
        with (tmp_path / "figures" / f"{name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) > 1
    assert len(list((tmp_path / "figures").iterdir())) == 3 * len(names)
    assert path.stat().st_size < 3_000_000


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = (report.write(runs.rich(), tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    for file in (tmp_path / "one" / "figures").iterdir():
        assert file.read_bytes() == (tmp_path / "other" / "figures" / file.name).read_bytes()


def test_a_hundred_brokers_still_make_a_page_that_can_be_sent(tmp_path: Path) -> None:
    assert report.write(runs.rich(100), tmp_path).stat().st_size < 3_000_000


@pytest.mark.parametrize(
    "data", [RunData("", {}), runs.poor(), RunData("x", {name: [{}] for name in runs.rich().tables})]
)
def test_a_run_of_which_little_is_known_has_a_page_that_says_so(data: RunData, tmp_path: Path) -> None:
    text = report.write(data, tmp_path).read_text()
    assert "<h1>" in text
    assert "Not shown:" in text


def test_figures_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    report.write(runs.rich(3, 30), tmp_path)
    (tmp_path / "figures" / "notes.txt").write_text("mine")
    report.write(runs.poor(), tmp_path)
    assert [file.name for file in (tmp_path / "figures").iterdir()] == ["notes.txt"]


def test_a_write_that_is_killed_leaves_the_page_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(TypeError):
        rendering.replace(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_from_a_log_becomes_an_element_an_attribute_or_a_script(tmp_path: Path) -> None:
    hostile = report.write(runs.hostile(), tmp_path / "hostile")
    assert_inert(hostile)
    tame = report.write(runs.rich(4, 30), tmp_path / "tame")
    assert {tag for tag, _ in tags(hostile)} <= {tag for tag, _ in tags(tame)}
    assert "{{7*7}}" in hostile.read_text()


def test_a_very_long_text_does_not_make_the_page_very_long(tmp_path: Path) -> None:
    marks: list[dict[str, object]] = [{"at_s": at, "text": "x" * 100_000} for at in range(20)]
    data = runs.rich(3, 30)
    plain = report.write(data, tmp_path).stat().st_size
    long = report.write(RunData(data.run, {**data.tables, "marks": marks}), tmp_path).stat().st_size
    assert long < plain + 100_000


def test_the_page_refers_to_nothing_outside(tmp_path: Path) -> None:
    for tag, attributes in tags(report.write(runs.rich(4, 30), tmp_path)):
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, value)


def test_the_policy_of_the_page_names_its_scripts_and_allows_no_other(tmp_path: Path) -> None:
    text = report.write(runs.poor(), tmp_path).read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "script-src 'sha256-" in policy[1].replace("&#39;", "'")


def test_json_in_a_page_cannot_end_its_element() -> None:
    text = page.inert_json({"a": "</script><!--\u2028&"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_formula_in_a_log_is_text_in_a_spreadsheet(formula: str) -> None:
    rows = list(csv.reader(page.csv_text([{"id": formula, "value": -1.5}]).splitlines(keepends=True)))
    assert rows[1] == [f"'{formula}", "-1.5"]


def test_a_header_that_is_a_formula_is_text_too() -> None:
    assert page.csv_text([{"=1+1": 1}]).startswith("'=1+1")


def test_a_broken_bundle_in_the_cache_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rendering.vega_script.cache_clear()
    script = rendering.vega_script()
    (kept,) = (tmp_path / "padres-panda").iterdir()
    kept.write_text(script[: len(script) // 2])
    rendering.vega_script.cache_clear()
    assert rendering.vega_script() == script
    assert kept.read_text() == script
    rendering.vega_script.cache_clear()


def test_every_table_that_is_wanted_says_how_many_rows_in_which_order() -> None:
    assert {each.table for each in WANTED} == set(runs.rich().tables)
    for each in WANTED:
        assert 0 < each.rows_max <= 5_000
        assert each.order


def test_what_was_cut_is_said_to_be_cut(tmp_path: Path) -> None:
    row = {"verdict": "lost", "publication": "P:1", "subscriber": "S"}
    data = RunData("many", {"deliveries": [row] * 300})
    assert (
        "The first 300; there may be more in the table deliveries."
        in report.write(data, tmp_path).read_text()
    )


def test_problems_of_the_logs_stand_at_the_top(tmp_path: Path) -> None:
    text = report.write(runs.rich(), tmp_path).read_text()
    assert text.index("did not come home: B4") < text.index("<main>")
    assert text.index("2 lines of the logs could not be read") < text.index("<main>")


def test_provenance_is_shown_by_its_shape(tmp_path: Path) -> None:
    text = report.write(runs.rich(), tmp_path).read_text()
    provenance = text[text.index('id="provenance"') :]
    assert "0.0 ADD B2 10.0.1.1 startbroker.sh -i B2 -n B1" in provenance
    assert "−3 ms" in provenance
    assert "broker -i B7 -p 10000 -Xmx 128" in provenance
