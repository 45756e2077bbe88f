"""What is known of a run follows from its events alone."""

from __future__ import annotations

from typing import Any

from panda.deploy.view import RunView, Stage
from tests.deploy.world import chain


class Told:
    """A view that is told events of one host."""

    def __init__(self) -> None:
        self.view = RunView(chain(2, 1))
        self._seq = 0

    def __call__(self, kind: str, **fields: Any) -> bool:
        self._seq += 1
        return self.view.take("h0", {"seq": self._seq, "t": 1.0, "kind": kind, **fields})

    def stage(self, process: str) -> Stage:
        return self.view.processes[process].stage


def test_a_client_that_has_done_its_work_ended_and_one_that_was_asked_to_was_removed() -> None:
    told = Told()
    for process in ("C0", "C1"):
        told("started", process=process, pid=1)
        told("ready", process=process)
    told("intent", number=9, action="remove", process="C1", planned=1.0)
    assert [each.planned.id for each in told.view.living] == ["C0"]
    for process in ("C0", "C1"):
        told("exited", process=process, code=0, expected=True)
    assert (told.stage("C0"), told.stage("C1")) == (Stage.ENDED, Stage.REMOVED)


def test_a_broker_that_ends_unasked_has_failed_and_one_that_is_stopped_has_not() -> None:
    told = Told()
    for process in ("B0", "B1"):
        told("started", process=process, pid=1)
        told("ready", process=process)
    told("exited", process="B0", code=0, expected=False, last="bye")
    told("intent", number=0, action="stop", planned=1.0)
    told("exited", process="B1", code=0, expected=True)
    assert (told.stage("B0"), told.stage("B1")) == (Stage.FAILED, Stage.REMOVED)
    assert told.view.processes["B0"].last == "bye"


def test_an_event_that_comes_again_changes_nothing() -> None:
    told = Told()
    assert told("started", process="B0", pid=1)
    assert told("link", process="B0", peer="id1", up=True)
    assert not told.view.take("h0", {"seq": 1, "kind": "started", "process": "B0", "pid": 2})
    assert told.view.processes["B0"].pid == 1
    assert told.view.link_up("B0", "B1") == (True, False)


def test_a_process_of_another_host_cannot_be_spoken_for() -> None:
    view = RunView(chain(2, 2))
    view.take("h0", {"seq": 1, "kind": "ready", "process": "B1"})
    assert view.processes["B1"].stage is Stage.WAITING


def test_a_paused_process_is_paused_until_it_is_resumed() -> None:
    told = Told()
    told("started", process="B0", pid=1)
    told("ready", process="B0")
    told("done", number=3, action="pause", process="B0", planned=1.0, actual=1.002)
    assert told.stage("B0") is Stage.PAUSED
    told("done", number=4, action="resume", process="B0", planned=2.0, actual=2.001)
    assert told.stage("B0") is Stage.READY
    told("done", number=5, action="pause", process="B0", planned=3.0, actual=3.0)
    told("done", number=5, action="pause", process="B0", planned=4.0, actual=4.2, lease=True)
    assert told.stage("B0") is Stage.READY
    late = [step.late_s for step in told.view.steps.values()]
    assert [round(each or 0.0, 4) for each in late] == [0.002, 0.001, 0.0]
