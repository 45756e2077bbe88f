"""Checks: decides whether the steps of a topology make sense together; never changes them.

Each check is a function from a topology to problems. All are run, so that all problems are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from panda.topology.checks import commands, faults, names, overlay, schedule
from panda.topology.model import Topology
from panda.topology.problems import Problem

Check = Callable[[Topology], Iterator[Problem]]

CHECKS: Final[tuple[Check, ...]] = (
    names.illegal_ids,
    names.illegal_hosts,
    names.duplicate_processes,
    names.duplicate_speakers,
    names.other_broker_id,
    commands.refused_options,
    commands.other_hostname,
    commands.nothing_to_read,
    overlay.port_twice,
    overlay.unknown_neighbour,
    overlay.self_link,
    overlay.phase_1_waits_for_phase_2,
    overlay.cycle,
    overlay.not_connected,
    overlay.unknown_broker,
    overlay.broker_starts_later,
    schedule.unknown_process,
    schedule.out_of_order,
    schedule.wrong_host,
    faults.unknown_link,
    faults.useless_groups,
)


def check_all(topology: Topology) -> list[Problem]:
    return [problem for check in CHECKS for problem in check(topology)]
