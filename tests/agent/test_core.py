"""What the agent decides: who steers, what is due when, what a journal means to the next supervisor."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_runtime.agent.core import SESSIONS_MAX
from broker_runtime.agent.effects import End, Freeze, Say, Spawn
from broker_runtime.agent.protocol import STEERING, WATCHING
from tests.agent.stage import Stage, command, runtime, spec_of, step


def code(answer: Any) -> str:
    return str(answer["error"]["code"])


def test_only_one_session_steers_and_the_other_learns_who() -> None:
    stage = Stage()
    assert stage.steer(1)["ok"]["epoch"] == 1
    refused = stage.steer(2)
    assert code(refused) == "LOCKED"
    assert "c1" in refused["error"]["message"]
    assert stage.steer(2, force=True)["ok"]["epoch"] == 2
    assert code(stage.ask(1, "start")) == "STALE_EPOCH"
    assert code(stage.steer(1, epoch=1)) == "STALE_EPOCH"


def test_the_lock_is_free_again_when_its_session_closes_and_the_epoch_goes_on() -> None:
    stage = Stage()
    stage.steer(1)
    stage.take(stage.core.closed(1, stage.now))
    assert stage.steer(2)["ok"]["epoch"] == 2
    assert [entry["present"] for entry in stage.of("controller")] == [True, False, True]


def test_who_hangs_up_while_it_stops_the_run_no_longer_holds_the_lock() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    stage.start_all()
    stage.take(stage.core.request(1, {"id": 9, "do": "stop"}, stage.now))
    stage.take(stage.core.hung_up(1, stage.now))
    assert stage.steer(2)["ok"]["state"] == "stopping"


def test_who_watches_may_look_and_change_nothing() -> None:
    stage = Stage()
    stage.core.opened(1)
    assert code(stage.ask(1, "status")) == "BAD_REQUEST"  # no hello
    stage.ask(1, "hello", controller="w", mode="watch")
    assert "ok" in stage.ask(1, "status")
    assert {code(stage.ask(1, do)) for do in STEERING} == {"LOCKED"}


def test_there_is_room_for_so_many_sessions_only() -> None:
    core = Stage().core
    assert all(core.opened(number) for number in range(SESSIONS_MAX))
    assert not core.opened(99)


def test_nothing_of_phase_two_happens_before_go() -> None:
    stage = Stage()
    stage.steer()
    stage.ask(
        1,
        "load",
        spec=spec_of([command("A"), command("B")], [step(1, 0.0, "add", "A"), step(2, 0.001, "add", "B")]),
    )
    assert stage.spawns() == []
    stage.ask(1, "start")
    stage.mono += 1000
    stage.take(stage.core.tick(stage.now))
    assert [order.process.id for order in stage.spawns()] == ["A"]
    assert stage.core.next_at() is None


def test_a_process_starts_only_after_its_intent_is_on_disk() -> None:
    stage = Stage(disk=False)
    stage.steer()
    stage.sync()
    stage.ask(1, "load", spec=spec_of([command("A")], [step(1, 0.0, "add", "A")]))
    stage.sync()
    assert stage.ask(1, "start") == {}
    assert [entry["number"] for entry in stage.of("intent")] == [1]
    assert stage.spawns() == []
    stage.sync()
    assert len(stage.spawns()) == 1


def test_intents_of_later_steps_are_on_disk_ahead_of_time_and_steps_run_when_planned() -> None:
    stage = Stage()
    steps = [step(1, 5.0, "mark", text="a"), step(2, 5.0, "mark", text="b"), step(3, 2.0, "mark", text="c")]
    stage.begin([], steps)
    stage.until(10.0)
    assert stage.done() == [(3, "mark", 2.0), (1, "mark", 5.0), (2, "mark", 5.0)]
    t0 = stage.core.conductor.t0
    assert t0 is not None
    assert [round(entry["t"] - t0, 3) for entry in stage.of("intent")] == [1.75, 4.75, 4.75]
    assert [entry["text"] for entry in stage.of("mark")] == ["c", "a", "b"]
    assert len(stage.of("ended")) == 1


def test_a_step_whose_disk_was_slow_is_done_late_and_says_so() -> None:
    stage = Stage()
    stage.begin([], [step(1, 1.0, "mark", text="a")])
    stage.disk = False
    stage.until(3.0)
    assert stage.done() == []
    stage.sync()
    assert stage.done() == [(1, "mark", 3.0)]
    assert stage.of("done")[0]["late"] is True


def test_leases_end_by_themselves() -> None:
    stage = Stage()
    steps = [step(1, 0.0, "add", "A"), step(2, 0.0, "add", "B")]
    steps += [step(3, 1.0, "pause", "A", for_s=2.0), step(4, 1.0, "kill", "B", for_s=3.0)]
    stage.begin([command("A"), command("B")], steps)
    stage.until(1.0)
    assert Freeze("A", True) in stage.orders
    assert End("B", 0.0, True) in stage.orders
    stage.happen("exited", "B", None, 9, "")
    stage.happen("gone", "B")
    stage.until(3.0)
    assert Freeze("A", False) in stage.orders
    stage.until(4.0)
    stage.start_all()
    assert stage.done()[2:] == [(3, "pause", 1.0), (4, "kill", 1.0), (3, "resume", 3.0), (4, "add", 4.0)]
    assert len(stage.of("ended")) == 1


def test_a_fault_is_said_on_the_line_answered_recorded_and_healed_in_time() -> None:
    stage = Stage()
    fault = step(2, 1.0, "fault", "A", fault="delay", peer="B", value=0.05, for_s=10.0)
    stage.begin([runtime("A")], [step(1, 0.0, "add", "A"), fault])
    stage.until(1.0)
    wanted = {"fault": "delay", "number": 2, "peer": "B", "value": 0.05, "for_s": 10.0}
    assert [order.message for order in stage.orders if isinstance(order, Say)] == [wanted]
    assert stage.done() == [(1, "add", -1.0)]
    stage.happen("said", "A", {"say": "fault", "number": 2, "ok": True})
    assert stage.done()[1:] == [(2, "fault", 1.0)]
    assert stage.ask(1, "status")["ok"]["faults"][0]["fault"] == "delay"
    stage.until(10.9)
    assert stage.of("healed") == []
    stage.until(11.0)
    assert [entry["peer"] for entry in stage.of("healed")] == ["B"]
    assert len(stage.of("ended")) == 1


@pytest.mark.parametrize(
    ("processes", "line", "why"),
    [([command("A")], False, "no process of the runtime"), ([runtime("A")], True, "did not answer")],
)
def test_a_fault_that_cannot_be_is_done_with_a_reason(
    processes: list[dict[str, Any]], line: bool, why: str
) -> None:
    stage = Stage()
    stage.steer()
    steps = [step(1, 0.0, "add", "A"), step(2, 1.0, "fault", "A", fault="cut", peer="B")]
    stage.ask(1, "load", spec=spec_of(processes, steps))
    stage.ask(1, "start")
    stage.started(stage.spawns()[0], line=line)
    stage.ask(1, "go", t0=stage.now.wall)
    stage.until(20.0)
    assert why in stage.of("done")[-1]["error"]
    assert len(stage.of("ended")) == 1


def test_steps_on_a_process_that_is_just_starting_or_ending_wait_for_it() -> None:
    stage = Stage()
    steps = [step(1, 1.0, "add", "A"), step(2, 1.0, "remove", "A"), step(3, 1.0, "add", "A")]
    stage.begin([command("A")], steps)
    stage.until(1.0)
    assert stage.done() == []
    stage.start_all()
    assert [(number, action) for number, action, _ in stage.done()] == [(1, "add"), (2, "remove")]
    stage.happen("exited", "A", None, 15, "")
    assert stage.spawns() == []
    stage.happen("gone", "A")
    stage.start_all()
    assert [number for number, _, _ in stage.done()] == [1, 2, 3]


def test_a_restart_ends_the_old_one_wholly_before_it_starts_the_new_one() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A"), step(2, 1.0, "restart", "A")])
    stage.until(1.0)
    assert stage.orders == [End("A", 5.0)]
    stage.happen("exited", "A", 0, None, "")
    assert stage.spawns() == []
    stage.happen("gone", "A")
    stage.start_all()
    assert [entry["expected"] for entry in stage.of("exited")] == [True]
    assert [number for number, _, _ in stage.done()] == [1, 2]


@pytest.mark.parametrize(("how", "stops"), [((3, None), True), ((None, 11), True), ((0, None), False)])
def test_the_policy_stop_ends_the_run_when_a_process_fails(
    how: tuple[int | None, int | None], stops: bool
) -> None:
    stage = Stage()
    steps = [step(1, 0.0, "add", "A"), step(2, 0.0, "add", "B"), step(3, 9.0, "mark", text="x")]
    stage.begin([command("A"), command("B")], steps, policy="stop")
    stage.happen("exited", "A", *how, "last words")
    assert (End("B", 5.0) in stage.orders) is stops
    stage.finish_stop()
    assert bool(stage.of("stopped")) is stops
    assert bool(stage.of("trouble")) is stops


def test_stop_answers_when_all_is_gone_and_cancels_what_was_to_come() -> None:
    stage = Stage()
    stage.begin(
        [command("A")], [step(1, 0.0, "add", "A"), step(2, 1.1, "mark", text="x"), step(3, 9.0, "kill", "A")]
    )
    stage.until(1.0)  # the mark's intent is written
    assert stage.ask(1, "stop", grace_s=1.0) == {}
    assert End("A", 1.0) in stage.orders
    stage.finish_stop()
    assert stage.answers[-1]["ok"] == {}
    assert stage.ask(1, "status")["ok"]["state"] == "stopped"
    assert [entry["error"] for entry in stage.of("done") if entry["number"] == 2] == ["the run was stopped"]
    assert stage.core.next_at() is None
    assert "ok" in stage.ask(1, "stop")


def test_a_process_still_starting_is_ended_by_stop_as_soon_as_it_has() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.5, "add", "A")])
    stage.until(0.5)
    stage.ask(1, "stop")
    assert not stage.of("stopped")
    stage.start_all()
    assert End("A", 5.0) in stage.orders
    stage.finish_stop()
    assert stage.of("stopped")


def test_the_run_stops_at_its_time() -> None:
    stage = Stage()
    stage.begin(
        [command("A")], [step(1, 0.0, "add", "A"), step(2, 99.0, "mark", text="never")], stop_at_s=60.0
    )
    stage.until(59.9)
    assert stage.of("ended") == []
    stage.until(60.0)
    stage.finish_stop()
    assert [entry["kind"] for entry in stage.entries if entry["kind"] in ("ended", "stopped")] == [
        "ended",
        "stopped",
    ]


def test_a_command_is_ready_when_it_has_lived_for_a_moment() -> None:
    stage = Stage()
    stage.begin([command("A"), runtime("B")], [step(1, 0.0, "add", "A"), step(2, 0.0, "add", "B")])
    stage.until(-0.5)
    assert [entry["process"] for entry in stage.of("ready")] == ["A"]
    stage.happen("said", "B", {"say": "ready", "id": "B", "address": "127.0.0.1:1"})
    stage.happen("said", "B", {"say": "ready", "id": "B", "address": "127.0.0.1:1"})
    assert [entry.get("address") for entry in stage.of("ready")] == [None, "127.0.0.1:1"]


def test_a_process_that_floods_its_line_fills_no_journal() -> None:
    stage = Stage()
    stage.begin([runtime("A")], [step(1, 0.0, "add", "A")])
    for number in range(5000):
        stage.happen("said", "A", {"say": "link", "peer": "B", "up": number % 2 == 0})
    assert len(stage.of("link")) <= 2000
    assert len(stage.of("trouble")) == 1
    assert stage.core.conductor.lives["A"].links == {"B": False}


def test_requests_that_come_again_after_a_reconnect_change_nothing() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    t0 = stage.core.conductor.t0
    before = len(stage.entries)
    assert "ok" in stage.ask(1, "load", spec=stage.kept)
    assert "ok" in stage.ask(1, "start")
    assert "ok" in stage.ask(1, "go", t0=t0)
    assert len(stage.entries) == before
    assert code(stage.ask(1, "go", t0=(t0 or 0.0) + 1)) == "WRONG_STATE"
    assert code(stage.ask(1, "load", spec={**stage.kept, "digest": "other"})) == "WRONG_STATE"
    extra = step(9, None, "mark", text="now")
    assert "ok" in stage.ask(1, "step", step=extra)
    assert "ok" in stage.ask(1, "step", step=extra)
    assert len(stage.of("mark")) == 1
    assert code(stage.ask(1, "step", step={**extra, "text": "other"})) == "BAD_REQUEST"


def test_quit_is_refused_while_processes_run_and_clean_stops_them_first() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    assert code(stage.ask(1, "quit")) == "WRONG_STATE"
    stage.ask(1, "clean")
    assert stage.left() == []
    stage.finish_stop()
    assert [order.clean for order in stage.left()] == [True]


def test_all_problems_of_a_spec_are_told_at_once_and_no_secret_with_them() -> None:
    stage = Stage()
    stage.steer()
    bad = spec_of(
        [command("../up"), runtime("B", word="no/word"), command("C", environment={"TOKEN": "se\0cret"})],
        [step(1, -1.0, "add", "C"), step(1, 0.0, "fly", "C"), step(2, 0.0, "add", "nobody")],
    )
    message = stage.ask(1, "load", spec=bad)["error"]["message"]
    for part in ("process 1: id", "process 2: word", "TOKEN", "step 1: at_s", "step 2: action", "nobody"):
        assert part in message
    assert "cret" not in message


def test_after_a_crash_epochs_and_sequence_numbers_go_on() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A"), step(2, 3.0, "mark", text="x")])
    other = stage.crash({"A"})
    assert [entry["seq"] for entry in other.entries] == list(range(1, len(other.entries) + 1))
    assert other.steer(1)["ok"]["epoch"] == 2
    other.until(5.0)
    assert [number for number, _, _ in other.done()] == [1, 2]
    assert other.spawns() == []


def test_after_a_crash_done_steps_are_not_repeated_at_whatever_point_it_came() -> None:
    stage = Stage()
    steps = [step(1, 0.0, "add", "A"), step(2, 1.0, "pause", "A", for_s=1.0), step(3, 3.0, "restart", "A")]
    stage.begin([command("A")], steps)
    for at_s in (0.5, 0.8, 1.0, 1.5, 2.0, 2.9):
        stage.until(at_s)
        stage = stage.crash({"A"})
    stage.until(3.0)
    stage.happen("exited", "A", None, None, "")
    stage.happen("gone", "A")
    stage.start_all()
    assert [(number, action) for number, action, _ in stage.done()] == [
        (1, "add"),
        (2, "pause"),
        (2, "resume"),
        (3, "restart"),
    ]


def test_wherever_the_journal_breaks_off_every_step_is_done_once() -> None:
    stage = Stage()
    steps = [step(1, 0.0, "add", "A"), step(2, 0.0, "add", "B"), step(3, 1.0, "kill", "B", for_s=2.0)]
    steps += [
        step(4, 1.0, "mark", text="x"),
        step(5, 1.5, "pause", "A", for_s=0.2),
        step(6, 2.0, "restart", "A"),
    ]
    steps += [step(7, 3.5, "fault", "A", fault="cut", peer="B", for_s=0.5), step(8, 4.0, "remove", "B")]
    stage.begin([runtime("A"), runtime("B")], steps, stop_at_s=6.0)
    stage.play(7.0)
    wanted = sorted((number, action) for number, action, _ in stage.done())
    assert len(wanted) == 11
    assert stage.core.conductor.state == "stopped"
    after_go = next(entry["seq"] for entry in stage.entries if entry["kind"] == "go")
    for written in range(after_go, len(stage.entries) + 1):
        beginning = stage.entries[:written]
        living = {
            id_
            for id_ in ("A", "B")
            if [
                e["kind"] for e in beginning if e.get("process") == id_ and e["kind"] in ("started", "exited")
            ][-1]
            == "started"
        }
        other = stage.crash(living, written)
        other.play(7.0)
        done = sorted((entry["number"], entry["action"]) for entry in other.of("done"))
        assert done == wanted, f"crash after {beginning[-1]}"
        assert other.core.conductor.state == "stopped"
        assert [entry["seq"] for entry in other.entries] == list(range(1, len(other.entries) + 1))


def test_a_start_that_was_intended_is_found_by_its_marker_or_made_up_for() -> None:
    for found in (True, False):
        stage = Stage()
        stage.begin([command("A")], [step(1, 1.0, "add", "A")])
        stage.until(1.0)
        assert len(stage.spawns()) == 1
        other = stage.crash({"A"} if found else set())
        assert len(other.spawns()) == (0 if found else 1)
        assert len(other.of("started")) == (1 if found else 0)


def test_a_process_that_ended_unwatched_is_reported_and_one_being_removed_is_ended_further() -> None:
    stage = Stage()
    steps = [step(1, 0.0, "add", "A"), step(2, 0.0, "add", "B"), step(3, 1.0, "remove", "B")]
    stage.begin([runtime("A"), command("B")], steps)
    stage.until(1.0)
    other = stage.crash({"B"})
    assert [(entry["process"], entry["code"], entry["expected"]) for entry in other.of("exited")] == [
        ("A", None, False)
    ]
    assert End("B", 5.0) in other.orders


def test_a_stop_under_way_goes_on_after_a_crash() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A"), step(2, 9.0, "mark", text="x")])
    stage.ask(1, "stop")
    other = stage.crash({"A"})
    assert End("A", 5.0) in other.orders
    other.finish_stop()
    assert other.of("stopped")
    assert other.of("mark") == []


def test_steps_added_later_survive_a_crash() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    stage.ask(1, "step", step=step(7, 5.0, "kill", "A"))
    other = stage.crash({"A"})
    other.until(5.0)
    assert End("A", 0.0, True) in other.orders


def test_a_step_may_bring_its_process_and_both_survive_a_crash() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    late = command("B", environment={"PANDA_TOKEN": "hush"})
    for _ in range(2):
        assert "ok" in stage.ask(1, "step", step=step(7, 5.0, "add", "B"), process=late)
    other = stage.crash({"A"})
    other.until(5.0)
    (spawned,) = [order.process for order in other.spawns() if order.process.id == "B"]
    assert spawned.environment == {"PANDA_TOKEN": "hush"}
    assert not any("hush" in str(entry) for entry in other.entries)


def test_a_step_cannot_bring_another_process_of_a_name_that_is_taken() -> None:
    stage = Stage()
    stage.begin([command("A")], [step(1, 0.0, "add", "A")])
    other = command("A", arguments=["something", "else"])
    refused = stage.ask(1, "step", step=step(7, 5.0, "add", "A"), process=other)
    assert refused["error"]["code"] == "BAD_REQUEST"
    assert "step" not in [entry["kind"] for entry in stage.entries]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("A"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
field_names = st.sampled_from(
    [
        "controller",
        "mode",
        "epoch",
        "force",
        "spec",
        "t0",
        "step",
        "grace_s",
        "since",
        "id",
        "do",
        "path",
        "process",
    ]
)
requests = st.builds(
    lambda do, id_, fields: {"id": id_, "do": do, **fields},
    st.sampled_from(sorted(STEERING | WATCHING)) | anything,
    st.integers(0, 5) | anything,
    st.dictionaries(field_names, anything, max_size=4),
)
good_spec = spec_of([command("A")], [step(1, 0.0, "add", "A"), step(2, 0.1, "restart", "A")])


def mutated(data: st.DataObject, value: Any) -> Any:
    """A spec with something in it replaced."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], mutated(data, value[index]), *value[index + 1 :]]
    return data.draw(anything)


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_asked_there_is_one_answer_and_never_an_exception(data: st.DataObject) -> None:
    stage = Stage()
    if data.draw(st.booleans()):
        stage.steer()
    else:
        stage.core.opened(1)
    for _ in range(data.draw(st.integers(1, 5))):
        before = len(stage.answers)
        message = data.draw(requests)
        if message["do"] in ("stop", "clean"):
            continue
        stage.take(stage.core.request(1, message, stage.now))
        assert len(stage.answers) + len(stage.left()) > before
    stage.steer()
    stage.ask(1, "load", spec=mutated(data, good_spec))
    stage.ask(1, "load", spec=good_spec)
    stage.ask(1, "start")
    stage.ask(1, "step", step=mutated(data, step(5, None, "kill", "A")))
    for order in stage.spawns():
        assert isinstance(order, Spawn)
        stage.started(order)
    stage.happen(
        "said", "A", data.draw(st.dictionaries(st.sampled_from(["say", "peer", "up", "number"]), anything))
    )
    stage.ask(1, "stop")
    stage.finish_stop()
    assert stage.core.conductor.state == "stopped"
