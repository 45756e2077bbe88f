"""Phase 2 never begins before phase 1 is there, and no gate hangs: against agents in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from panda.deploy.coordinator import LOST_HOST_S, STOP_TIMEOUT_S, Ask, Result, StopAsked
from panda.plan.model import Policy
from tests.deploy.world import World, chain


def test_a_deployment_without_trouble_gives_go_when_everything_is_up() -> None:
    world = World(chain(5, 2))
    world.play(20.0)
    assert world.go is not None
    assert world.confirmed_at_go == {"h0": True, "h1": True}
    assert world.started_before_go == []
    assert world.coordinator.state == "running"


def test_a_broker_without_links_is_waited_for_too() -> None:
    plan = replace(chain(3, 3), links=())
    world = World(plan, seed=1)
    world.play(20.0)
    assert world.confirmed_at_go == {"h0": True, "h1": True, "h2": True}


def test_a_link_that_never_comes_up_is_named_with_both_ends() -> None:
    world = World(chain(3, 3, gate_timeout_s=10.0))
    kept = world.set_link
    world.set_link = lambda a, b, up: None if {a, b} == {"B1", "B2"} else kept(a, b, up)  # type: ignore[method-assign]
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.GATE_NOT_MET
    assert [str(each) for each in finish.missing] == ["link B2 – B1: not up at B2 and B1"]
    assert world.go is None
    assert not any(world.alive.values()), "what had been started is stopped again"


def test_a_broker_that_dies_in_phase_1_ends_the_wait_at_once_with_its_last_words() -> None:
    world = World(chain(3, 3, gate_timeout_s=100.0))
    world.crash["B1"] = 0.5
    world.delay_s = lambda: 5.0
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.GATE_NOT_MET
    assert "B1 on h1 ended by itself: exit code 1" in finish.why
    assert "boom" in [each.last for each in finish.missing]
    assert world.now < 10.0


def test_without_rollback_what_was_started_stays() -> None:
    world = World(chain(2, 1, gate_timeout_s=5.0), rollback=False)
    world.delay_s = lambda: 50.0
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.GATE_NOT_MET
    assert all(world.alive.values())


@pytest.mark.parametrize("seed", range(200))
def test_delayed_crashing_and_partitioned_brokers_never_open_the_gate_early_or_hang_it(seed: int) -> None:
    world = World(chain(2 + seed % 5, 1 + seed % 3, gate_timeout_s=15.0), seed)
    r = world.random
    brokers = [each.id for each in world.plan.first_phase]
    world.delay_s = lambda: r.expovariate(1 / r.choice((0.05, 1.0, 4.0)))
    if seed % 3 == 0:
        world.crash[r.choice(brokers)] = r.uniform(0.0, 6.0)
    for _ in range(r.randint(0, 4)):  # links come and go while the gate is watched
        link = r.choice(world.plan.links)
        when = r.uniform(0.1, 8.0)
        world.at(when, lambda link=link: world.set_link(link.a, link.b, False))
        world.at(when + r.uniform(0.0, 5.0), lambda link=link: world.set_link(link.a, link.b, True))
    if seed % 4 == 1:
        host = r.choice(list(world.view.hosts))
        world.at(r.uniform(0.1, 3.0), lambda: world.lose(host, r.uniform(0.1, 30.0)))
    world.play(60.0)
    assert world.started_before_go == []
    if world.go is None:
        assert world.finish is not None, "the gate hangs"
        assert world.finish.result is Result.GATE_NOT_MET
        assert world.finish.missing or world.finish.why
        assert world.now <= 15.0 + STOP_TIMEOUT_S + 1.0
    else:
        assert world.go.t0 <= 15.0 + 1.0
        assert set(world.confirmed_at_go) == set(world.view.hosts)
        assert all(world.confirmed_at_go.values()), "GO was given while something was missing"


def test_a_link_that_falls_before_every_agent_has_confirmed_keeps_the_gate_shut() -> None:
    world = World(chain(2, 2))
    world.delay_s = lambda: 1.0
    kept = world.agent

    def fall_when_asked(ask: Ask) -> None:
        if ask.do == "clock" and world.now < 10.0:
            world.set_link("B1", "B0", False)
            world.at(10.0, lambda: world.set_link("B1", "B0", True))
        kept(ask)

    world.agent = fall_when_asked  # type: ignore[method-assign]
    world.play(60.0)
    assert world.go is not None
    assert world.go.t0 > 10.0
    assert all(world.confirmed_at_go.values())


def test_policy_stop_ends_the_run_when_a_process_dies_after_go() -> None:
    world = World(replace(chain(3, 2), policy=Policy.STOP))
    world.at(30.0, lambda: world.die("B1"))
    finish = world.play()
    assert world.go is not None
    assert finish is not None
    assert finish.result is Result.FAILED
    assert "B1" in finish.why
    assert not any(world.alive.values())


def test_policy_continue_reports_a_death_and_goes_on() -> None:
    world = World(chain(3, 2))
    world.at(30.0, lambda: world.die("B1"))
    world.play(100.0)
    assert world.finish is None
    assert any(tell.kind == "failed" and "B1" in tell.text for tell in world.told)


def test_a_host_that_vanishes_is_reported_and_stops_the_run_only_by_policy() -> None:
    for policy in Policy:
        world = World(replace(chain(3, 3), policy=policy))
        world.at(30.0, lambda world=world: world.lose("h2", 1000.0))
        finish = world.play(120.0)
        assert any("h2 is out of reach" in tell.text for tell in world.told)
        if policy is Policy.STOP:
            assert finish is not None
            assert finish.result is Result.FAILED
            assert world.now >= 30.0 + LOST_HOST_S
            assert any("h2 has not confirmed" in tell.text for tell in world.told)
        else:
            assert finish is None


def test_a_controller_that_comes_back_after_go_gives_the_same_go() -> None:
    world = World(chain(2, 2), t0=123.0)
    world.play(10.0)
    assert world.go is not None
    assert world.go.t0 == 123.0


def test_stop_asked_while_waiting_stops_every_host() -> None:
    world = World(chain(3, 2))
    world.delay_s = lambda: 20.0
    world.at(1.0, lambda: world.feed(StopAsked("interrupted")))
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.STOPPED
    assert not any(world.alive.values())


def test_hosts_that_end_their_schedule_end_the_deployment() -> None:
    world = World(chain(2, 2))
    for host in world.view.hosts:
        world.at(20.0, lambda host=host: world.event(host, "ended"))
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.RUNNING


def test_with_a_time_to_stop_the_deployment_ends_when_everything_is_gone_and_not_before() -> None:
    world = World(replace(chain(2, 2), stop_at_s=20.0))
    for host in world.view.hosts:
        world.at(20.0, lambda host=host: world.event(host, "ended"))
        world.at(22.0, lambda host=host: world.event(host, "stopped"))
    finish = world.play()
    assert finish is not None
    assert finish.result is Result.STOPPED
    assert world.now >= 22.0
