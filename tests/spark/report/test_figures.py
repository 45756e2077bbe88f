"""Figures: valid specifications that say what the rows say, or a sentence that says why there is none."""

from __future__ import annotations

import itertools
import json
import math

import pytest
import vl_convert

from panda_spark.report import RunData, distribution, layout, network, samples, timeline
from panda_spark.report.figure import Absent, Figure, label_limit
from panda_spark.report.palette import DARK, LIGHT, themed_spec, themed_svg
from tests.spark.report import runs


def figures(data: RunData) -> list[Figure | Absent]:
    axis = timeline.TimeAxis(data)
    return [
        timeline.latency(data, axis),
        timeline.throughput(data, axis),
        timeline.lives(data, axis),
        samples.detections(data, axis),
        *samples.sampled(data, axis),
        distribution.histogram(data),
        *(distribution.percentiles(data, by) for by in ("class", "subscriber", "publisher", "broker")),
        *(distribution.verdicts(data, by) for by in ("subscriber", "class")),
        distribution.hops(data),
        distribution.schedule(data),
        distribution.clocks(data),
        distribution.faults(data),
        network.topology(data),
        network.load(data),
    ]


@pytest.mark.parametrize("data", [runs.rich(1), runs.rich(100), runs.hostile()])
def test_every_figure_of_a_run_is_a_specification_that_can_be_drawn(data: RunData) -> None:
    for figure in figures(data):
        if isinstance(figure, Absent):
            continue
        json.dumps(figure.spec, allow_nan=False)
        svg = vl_convert.vegalite_to_svg(figure.spec, show_warnings=True)
        assert svg.startswith("<svg")
        assert "NaN" not in svg, figure.name
        assert figure.rows


def test_without_rows_every_figure_says_why_it_is_not_there() -> None:
    for data in (RunData("empty", {}), runs.poor()):
        for figure in figures(data):
            assert isinstance(figure, Absent)
            assert figure.why


def test_rows_without_any_column_are_as_good_as_none() -> None:
    tables = {name: [{}] for name in runs.rich().tables}
    tables["latency"] = [{"by": by} for by in ("all", "time", "class")]
    for figure in figures(RunData("hollow", tables)):
        if isinstance(figure, Figure):
            assert vl_convert.vegalite_to_svg(figure.spec).startswith("<svg")


def test_silence_breaks_the_line_of_latency() -> None:
    data = runs.rich()
    figure = timeline.latency(data, timeline.TimeAxis(data))
    assert isinstance(figure, Figure)
    assert [row["at_s"] for row in figure.rows if row["shown_s"] is None and row["series"] == "p50"] == [26.0]


def test_figures_of_time_share_one_axis_with_faults_and_marks_in_them() -> None:
    data = runs.rich()
    axis = timeline.TimeAxis(data)
    for figure in (timeline.latency(data, axis), timeline.throughput(data, axis), timeline.lives(data, axis)):
        assert isinstance(figure, Figure)
        assert [param["value"] for param in figure.spec["params"]] == [-3.2, 120.4]
        drawn = json.dumps(figure.spec["layer"])
        assert "cut B1\\u2013B3" in drawn
        assert "the link breaks" in drawn


def test_labels_of_marks_never_run_into_each_other() -> None:
    marks: list[dict[str, object]] = [{"at_s": at / 3, "text": f"mark {at} of many"} for at in range(90)]
    axis = timeline.TimeAxis(RunData("marks", {"marks": marks}))
    by_row: dict[object, list[tuple[float, float]]] = {}
    scale = (timeline.WIDTH - timeline.AXIS_EXTENT) / (axis.until_s - axis.from_s)
    for label in axis._labels():
        wide = len(str(label["label"])) * timeline.LABEL_WIDTH
        left = (float(str(label["at_s"])) - axis.from_s) * scale - (wide if label["right"] else 0)
        by_row.setdefault(label["row"], []).append((left, left + wide))
    assert len(by_row) == timeline.LABEL_ROWS
    for boxes in by_row.values():
        assert all(one[1] < other[0] for one, other in itertools.pairwise(sorted(boxes)))


def test_a_hundred_brokers_are_all_named_and_few_names_hide_each_other() -> None:
    figure = network.topology(runs.rich(100))
    assert isinstance(figure, Figure)
    labels = [
        row
        for layer in figure.spec["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    ]
    assert {f"B{place}" for place in range(1, 101)} <= {row["label"] for row in labels}
    boxes = [(row["x"], row["y"], len(row["label"]) * network.LETTER_WIDE) for row in labels]
    hidden = sum(
        abs(a[0] - b[0]) < (a[2] + b[2]) / 2 and abs(a[1] - b[1]) < network.LABEL_HIGH
        for a, b in itertools.combinations(boxes, 2)
    )
    assert hidden <= 3


def test_a_chain_of_brokers_lies_in_a_strip_and_parts_lie_apart() -> None:
    links: list[dict[str, object]] = [{"a": "A", "b": "B"}, {"a": "B", "b": "C"}, {"a": "X", "b": "Y"}]
    net = network.overlay(RunData("chain", {"links": links}))
    places = network._places(sorted(net.records), net, 220)
    assert len(set(places.values())) == 5
    figure = network.topology(RunData("chain", {"links": links[:2]}))
    assert isinstance(figure, Figure)
    assert figure.spec["height"] < network.HIGH / 2


def test_neighbours_lie_nearer_than_strangers_and_the_same_links_give_the_same_places() -> None:
    names = [f"B{place}" for place in range(60)]
    links = [(names[(place - 1) // 3], names[place]) for place in range(1, 60)]
    places = layout.laid_out(names, links)
    assert places == layout.laid_out(names, links)
    near = sum(math.dist(places[a], places[b]) for a, b in links) / len(links)
    pairs = list(itertools.combinations(names, 2))
    assert near < 0.5 * sum(math.dist(places[a], places[b]) for a, b in pairs) / len(pairs)


def test_the_ends_of_a_chain_lie_as_far_apart_as_there_are_links() -> None:
    names = [f"B{place}" for place in range(9)]
    places = layout.laid_out(names, list(itertools.pairwise(names)))
    assert math.dist(places["B0"], places["B8"]) == pytest.approx(8, rel=0.05)


@pytest.mark.parametrize("name", ["W" * 9, "i" * 30, "\u5317\u4eac", "\ufdfd"])
def test_a_label_that_may_be_too_wide_keeps_its_limit(name: str) -> None:
    assert label_limit(["B1\u2013B2", name], 76) == 76


def test_labels_that_fit_for_certain_need_no_limit() -> None:
    assert label_limit(["B1\u2013B2", "Carol"], 76) == 0


def test_a_link_carries_what_one_end_counted_and_not_the_sum_of_both() -> None:
    rows: list[dict[str, object]] = [
        {"broker": "A", "peer": "B", "role": "broker", "records_in": 3, "records_out": 7},
        {"broker": "B", "peer": "A", "role": "broker", "records_in": 7, "records_out": 3},
    ]
    assert network.overlay(RunData("two", {"traffic": rows})).links == {("A", "B"): 10}


def test_flaws_are_drawn_and_a_run_without_any_says_so() -> None:
    figure = distribution.verdicts(runs.rich(), "subscriber")
    assert isinstance(figure, Figure)
    assert figure.rows[0]["key"] == "S3"
    assert not [row for row in figure.rows if row["series"] == "delivered"]
    good: list[dict[str, object]] = [{"subscriber": "S", "class": "c", "verdict": "delivered", "count": 4}]
    absent = distribution.verdicts(RunData("good", {"verdicts": good}), "class")
    assert absent == Absent("Flaws by class", "every delivery came once, in order and in time")


def test_colours_become_variables_in_pictures_and_specifications_but_not_in_data() -> None:
    assert len(set(LIGHT.values())) == len(LIGHT) == len(DARK)
    blue = LIGHT["blue"]
    assert (
        themed_svg(f'<path fill="{blue}" stroke="#123456"/>') == '<path fill="var(--blue)" stroke="#123456"/>'
    )
    spec = {"mark": {"color": blue}, "data": {"values": [{"id": blue}]}}
    assert themed_spec(spec) == {"mark": {"color": "var(--blue)"}, "data": {"values": [{"id": blue}]}}


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_text_is_readable_on_its_ground(scheme: dict[str, str]) -> None:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for name in ("ink", "soft", "blue", "red", "teal"):
        high, low = sorted((light(scheme[name]), light(scheme["ground"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, name
