"""Decides whether an execution was right; looks at its history and nothing else.

Every problem is one line that begins with the name of the checker that found it.
"""

from __future__ import annotations

from broker_runtime.sim import answers, deliveries, tables
from broker_runtime.sim.history import History

CHECKERS = (
    deliveries.exactly_once,
    deliveries.in_order,
    deliveries.nothing_unexpected,
    deliveries.nothing_missing,
    answers.every_call_answered,
    answers.refused_as_promised,
    answers.confirmed_when_gone,
    tables.told_is_known,
    tables.wanted_is_told,
    tables.overlay_is_a_tree,
    tables.back_to_baseline,
)


def check(history: History) -> list[str]:
    problems = list(history.problems)
    for checker in CHECKERS:
        name = checker.__name__.replace("_", " ")
        problems += [f"{name}: {problem}" for problem in checker(history)]
    return problems
