"""What a graph looks like in cells: golden cases, and what holds for every picture."""

import textwrap
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda_tui.overlay.camera import Camera, Slot, camera_for
from panda_tui.overlay.canvas import NOBODY, Canvas
from panda_tui.overlay.drawing import NAME_MAX, Picture, drawn, full_slot, shown_name
from panda_tui.overlay.graph import Graph, graph_of
from panda_tui.overlay.layout import Layout, placed
from panda_tui.overlay.painting import Look, Mark, Painting, Tone
from tests.tui.test_layout import graphs, random_tree

STAR = graph_of((), [("A", "B"), ("A", "C"), ("A", "D")], {"S": "C"})


def picture_of(graph: Graph, layout: Layout, width: int, height: int, zoom: int = 0) -> Picture:
    standing = placed(graph, layout)
    return drawn(graph, standing, camera_for(standing, full_slot(graph), width, height).zoomed(zoom))


def stripped(text: str) -> list[str]:
    """Without the space around it."""
    return textwrap.dedent(
        "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    ).splitlines()


def test_a_tree_with_room_is_boxes_and_corners() -> None:
    picture = picture_of(STAR, Layout.TREE, 50, 30)
    assert picture.boxed
    assert stripped(picture.text()) == stripped("""\
            ╭───────╮
            │   A   │
            │       │
            ╰───────╯
                │
    ╭───────────┼───────────╮
    │           │           │
╭───────╮   ╭───────╮   ╭───────╮
│   B   │   │   C   │   │   D   │
│       │   │       │   │       │
╰───────╯   ╰───────╯   ╰───────╯
                │
                │
                │
            ╭╌╌╌╌╌╌╌╮
            │   S   │
            │       │
            ╰╌╌╌╌╌╌╌╯
""")


def test_with_less_room_it_is_dots_and_names() -> None:
    picture = picture_of(STAR, Layout.TREE, 36, 11)
    assert not picture.boxed
    assert stripped(picture.text()) == stripped("""\
            ●A
            │
╭───────────┼──────────╮
│           │          │
●B          ●C         ●D
            │
            │
            │
            ○S
""")


def test_without_room_for_corners_lines_are_dotted() -> None:
    picture = picture_of(STAR, Layout.TREE, 20, 5)
    assert not any(letter in "│─╭╮┼" for row in picture.letters for letter in row)
    assert any("\u2801" <= letter <= "\u28ff" for row in picture.letters for letter in row)
    assert picture.unnamed == 0


def test_lines_that_turn_are_joined_where_they_meet() -> None:
    canvas = Canvas(7, 5)
    canvas.down(3, 0, 4, 0)
    canvas.across(2, 0, 6, 1)
    canvas.across(0, 3, 5, 2)
    canvas.across(4, 3, 1, 2)
    assert ["".join(row).rstrip() for row in canvas.rows()] == ["   ╭─╴", "   │", "╶──┼──╴", "   │", " ╶─╯"]


def test_a_straight_line_is_eight_dots_to_a_cell() -> None:
    canvas = Canvas(6, 2)
    canvas.straight((0, 0), (5, 1), 0)
    assert ["".join(row) for row in canvas.rows()] == ["⠒⠤⣀⡀  ", "   ⠈⠑⠂"]


@given(
    st.tuples(st.integers(-60, 60), st.integers(-60, 60)),
    st.tuples(st.integers(-60, 60), st.integers(-60, 60)),
)
def test_lines_may_begin_and_end_anywhere(start: tuple[int, int], end: tuple[int, int]) -> None:
    canvas = Canvas(11, 7)
    canvas.straight(start, end, 3)
    canvas.across(start[1], start[0], end[0], 4)
    canvas.down(start[0], start[1], end[1], 5)
    for column, row in (start, end):
        if 0 <= column < 11 and 0 <= row < 7:
            assert canvas.owners[row * 11 + column] != NOBODY or start == end
    assert [len(row) for row in canvas.rows()] == [11] * 7


@given(graphs(), st.sampled_from(list(Layout)), st.sampled_from([(80, 24), (200, 60), (33, 9)]))
def test_at_full_zoom_every_node_in_sight_shows_its_name_and_none_touch(
    graph: Graph, layout: Layout, size: tuple[int, int]
) -> None:
    standing = placed(graph, layout)
    camera = camera_for(standing, full_slot(graph), *size).zoomed(99)
    for name in graph.nodes:
        picture = drawn(graph, standing, camera.at(standing.points[name]))
        shown = Counter(
            thing for row in range(size[1]) for thing in {picture.owner_at(c, row) for c in range(size[0])}
        )
        assert shown[name] == 4  # the rows of its box
        row = size[1] // 2
        assert name in "".join(picture.letters[row])


@given(graphs(), st.sampled_from(list(Layout)), st.integers(0, 8), st.integers(1, 90), st.integers(1, 40))
def test_names_never_share_a_cell_at_any_zoom(
    graph: Graph, layout: Layout, zoom: int, width: int, height: int
) -> None:
    picture = picture_of(graph, layout, width, height, zoom)
    numbers = {name: i for i, name in enumerate(graph.nodes)}
    assert [len(row) for row in picture.letters] == [width] * height
    named = 0
    for name, number in numbers.items():
        for letters, owners in zip(picture.letters, picture.owners, strict=True):
            mine = "".join(a if b == number else "\0" for a, b in zip(letters, owners, strict=True))
            named += name in mine
    if zoom == 0 and not picture.boxed:
        assert named + picture.unnamed >= 1
    for place in picture.fields:
        assert set(picture.owners[place.row][place.column : place.column + place.width]) == {place.owner}


@given(graphs(), st.sampled_from(list(Layout)), st.integers(20, 200), st.integers(6, 60))
def test_at_first_everything_is_in_sight(graph: Graph, layout: Layout, width: int, height: int) -> None:
    standing = placed(graph, layout)
    camera = camera_for(standing, full_slot(graph), width, height)
    for point in standing.points.values():
        column, row = camera.cell(point, camera.slot)
        assert 0 <= column < width
        assert 0 <= row < height


def test_a_hundred_brokers_on_a_small_screen_are_nearly_all_named() -> None:
    picture = picture_of(random_tree(100, seed=4), Layout.TREE, 80, 22)
    assert picture.unnamed <= 12


def test_whoever_is_chosen_gets_a_name_before_others() -> None:
    graph = random_tree(100, seed=4)
    standing = placed(graph, Layout.CIRCULAR)
    camera = camera_for(standing, full_slot(graph), 80, 22)
    for name in graph.nodes[:20]:
        picture = drawn(graph, standing, camera, first=[name])
        assert any(name in "".join(row) for row in picture.letters)


def test_long_names_are_cut() -> None:
    assert shown_name("B" * 30) == "B" * (NAME_MAX - 1) + "…"
    assert picture_of(graph_of(["B" * 64], ()), Layout.TREE, 40, 9).text().count("…") == 1


# Cameras


def test_zooming_in_and_out_comes_back() -> None:
    standing = placed(random_tree(100, seed=1), Layout.TREE)
    camera = camera_for(standing, Slot(9.0, 7.0), 80, 22)
    assert camera.steps > 2
    assert camera.zoomed(2).zoomed(-2) == camera
    assert camera.zoomed(99).slot == Slot(9.0, 7.0)
    assert camera.zoomed(-5) == camera


@given(st.floats(-50, 50), st.floats(-50, 50), st.integers(0, 6))
def test_what_is_to_be_seen_is_seen(x: float, y: float, zoom: int) -> None:
    standing = placed(random_tree(100, seed=1), Layout.TREE)
    camera = camera_for(standing, Slot(9.0, 7.0), 80, 22).zoomed(zoom)
    moved = camera.seeing((x, y))
    column, row = moved.cell((x, y), moved.slot)
    assert 0 <= column < 80
    assert 0 <= row < 22
    assert moved.seeing((x, y)) == moved


def test_a_camera_does_not_look_past_the_edge() -> None:
    camera = Camera(0, 0, 1, 1, Slot(1, 1), Slot(2, 2), 10, 10)
    assert camera.panned(999, -999).within((0, 0, 3, 3)) == Camera(3, 0, 1, 1, Slot(1, 1), Slot(2, 2), 10, 10)


# Painting


def test_only_rows_with_something_new_are_painted_again() -> None:
    painting = Painting(picture_of(STAR, Layout.TREE, 36, 9))
    looks = {name: Look(Tone.CALM) for name in STAR.nodes} | {edge: Look(Tone.CALM) for edge in STAR.edges}
    first = painting.paint(looks, {})
    assert first >= {1, 4, 7}
    assert painting.paint(looks, {}) == set()
    changed = painting.paint(looks | {"B": Look(Tone.HOT)}, {})
    assert len(changed) == 1
    (row,) = changed
    assert ("●B", (Tone.HOT, Mark.NONE)) in [(text.strip(), style) for text, style in painting.runs(row)]
    assert painting.paint(looks, {"B": Mark.SELECTED}) == {row}


def test_rates_are_written_on_links_and_the_line_stays_beside_them() -> None:
    painting = Painting(picture_of(graph_of((), [("A", "B")]), Layout.CIRCULAR, 80, 9, 1))
    before = painting.text()
    painting.paint({("A", "B"): Look(Tone.CALM, "12")}, {})
    written = painting.text()
    assert "12" in written
    assert sum(a != b for a, b in zip(before, written, strict=True)) == 2
    painting.paint({("A", "B"): Look(Tone.CALM)}, {})
    assert painting.text() == before


@given(graphs(), st.sampled_from(list(Layout)), st.integers(0, 3), st.data())
def test_the_pieces_of_a_row_make_up_the_row(
    graph: Graph, layout: Layout, zoom: int, data: st.DataObject
) -> None:
    painting = Painting(picture_of(graph, layout, 70, 20, zoom))
    texts = st.text(st.sampled_from("0123456789k."), max_size=9)
    looks = {
        thing: Look(data.draw(st.sampled_from(list(Tone))), data.draw(texts)) for thing in graph.nodes[:4]
    }
    painting.paint(looks, {})
    for row in range(20):
        runs = painting.runs(row)
        assert sum(len(text) for text, _ in runs) == 70
        assert "".join(text for text, _ in runs).rstrip() == painting.text().split("\n")[row]
    assert painting.runs(20) == []


@pytest.mark.parametrize("layout", list(Layout))
def test_the_cell_under_the_mouse_is_somebodys(layout: Layout) -> None:
    picture = picture_of(STAR, layout, 50, 30)
    standing = placed(STAR, layout)
    camera = camera_for(standing, full_slot(STAR), 50, 30)
    for name in STAR.nodes:
        assert picture.owner_at(*camera.cell(standing.points[name], camera.slot)) == name
    assert picture.owner_at(-1, 0) is None
    assert picture.owner_at(0, 0) is None
