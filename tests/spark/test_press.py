"""The process that draws: the same pictures as here, in their order, and nothing of it is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from panda_spark.press import FIRST, Press
from panda_spark.report.page import write
from panda_spark.report.rendering import here
from tests.spark.report import runs


def wide(pixels: int) -> dict[str, object]:
    return {**FIRST, "width": pixels}


def test_a_press_draws_what_would_be_drawn_here_in_the_order_asked_for() -> None:
    specs = [wide(pixels) for pixels in (100, 300, 200)]
    with Press() as press:
        assert list(press.draw(specs)) == list(here(specs))


def test_a_report_may_be_larger_than_what_lies_between_two_processes(tmp_path: Path) -> None:
    with Press() as press:
        there = write(runs.rich(12), tmp_path / "there", press.draw)
    assert there.read_bytes() == write(runs.rich(12), tmp_path / "here").read_bytes()


def test_a_press_draws_again_for_the_next_run() -> None:
    with Press() as press:
        assert list(press.draw([wide(100)])) == list(press.draw([wide(100)]))
        assert list(press.draw([])) == []


def test_what_cannot_be_drawn_is_no_silence_but_an_error() -> None:
    with Press() as press, pytest.raises(RuntimeError, match="ended before"):
        list(press.draw([{"mark": 7}, wide(100)]))


def test_a_press_that_is_left_is_gone() -> None:
    with Press() as press:
        pid = press._popen.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
