"""The schedule as a picture: everything has its place, and stays in it."""

import pytest

from panda_tui.model import StepRow
from panda_tui.timeline import Scale, picture


def rows(*steps: StepRow, end_s: float = 100.0, width: int = 60, now_s: float | None = None) -> list[str]:
    return picture(steps, Scale(end_s, width), now_s).plain.splitlines()


def step(at_s: float, action: str, text: str, **rest: object) -> StepRow:
    return StepRow(1, at_s, action, text, **rest)  # type: ignore[arg-type]


def test_a_fault_is_a_bar_as_long_as_its_lease_and_told_once_for_both_ends() -> None:
    both = [
        step(10, "fault", "cut A – B for 20 s", ends=("A", "B"), process="A", for_s=20.0),
        step(10, "fault", "cut B – A for 20 s", ends=("A", "B"), process="B", for_s=20.0),
    ]
    drawn = [row for row in rows(*both) if "█" in row]
    assert len(drawn) == 1
    assert drawn[0].count("█") in (12, 13)
    assert "cut A – B for 20 s" in drawn[0]


def test_a_text_that_has_no_room_behind_its_bar_stands_before_it() -> None:
    late = step(80, "fault", "delay A – B 0.5 for 20 s", ends=("A", "B"), for_s=20.0)
    (drawn,) = [row for row in rows(late) if "█" in row]
    assert drawn.index("delay") < drawn.index("█")
    assert drawn.rstrip().endswith("█")


def test_now_goes_through_everything() -> None:
    drawn = rows(step(1, "add", "add A"), step(50, "mark", "MARK half"), now_s=25.0)
    columns = {row.index("│") for row in drawn if "│" in row}
    assert len(columns) == 1
    assert "half" in drawn[-1]


@pytest.mark.parametrize("end_s", [0.5, 1.0, 59.0, 3600.0, 1e6])
def test_nothing_is_wider_than_the_screen(end_s: float) -> None:
    steps = [step(end_s * share, "mark", "MARK a long text") for share in (0, 0.5, 1)]
    steps += [step(end_s, "fault", "cut", process="A", for_s=end_s)]
    assert all(len(row) <= 9 + 60 for row in rows(*steps, end_s=end_s, now_s=end_s))
