"""Decides what simulated clients talk about: few attributes and small ranges, so that filters often nest.

Identical filters of several clients, nested ranges, lists inside ranges and prefixes of each other are all
likely; dates, payloads and publications that nobody advertised turn up now and then.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Op, Predicate, predicate
from broker_runtime.language.values import Type, Value

CLASSES: Final = ("stock", "alarm")
NUMBERS: Final = ("x", "y")
RANGE_MAX: Final = 9
NAMES: Final = ("a", "ab", "abc", "abd", "b", "bc")
FIRST_DAY: Final = datetime(2010, 1, 1, tzinfo=UTC)
DAYS: Final = 4


def advertisement(random: Random) -> Advertisement:
    predicates = [_class(random)]
    for name in NUMBERS:
        if random.random() < 0.85:
            predicates += _range(random, name, wide=True)
    if random.random() < 0.7:
        predicates.append(predicate("name", Op.PRESENT, Type.STRING))
    elif random.random() < 0.5:
        predicates.append(predicate("name", Op.PREFIX, random.choice(("a", "b"))))
    if random.random() < 0.5:
        predicates.append(predicate("day", Op.PRESENT, Type.ANY))
    return Advertisement(predicates)


def everything(class_: str) -> Advertisement:
    """The advertisement that covers all others of its class."""
    return Advertisement(
        [
            predicate(CLASS, Op.EQ, class_),
            *(predicate(name, Op.PRESENT, Type.ANY) for name in (*NUMBERS, "name", "day")),
        ]
    )


def subscription(random: Random) -> Subscription:
    predicates = [_class(random)]
    for name in NUMBERS:
        if random.random() < 0.45:
            predicates += _range(random, name, wide=False)
    if random.random() < 0.3:
        predicates.append(_name(random))
    if random.random() < 0.1:
        predicates.append(predicate("day", Op.GE, FIRST_DAY + timedelta(days=random.randrange(DAYS))))
    return Subscription(predicates)


def content(random: Random, promised: Advertisement | None) -> dict[str, Value]:
    """Content that the advertisement allows, or any content when there is none."""
    said: dict[str, Value] = {CLASS: random.choice(CLASSES)}
    if promised is not None:
        said[CLASS] = str(promised.predicates[0].operand)
    for name in NUMBERS:
        if random.random() < 0.8:
            said[name] = random.randint(0, RANGE_MAX)
    if random.random() < 0.6:
        said["name"] = random.choice(NAMES)
    if random.random() < 0.15:
        said["day"] = FIRST_DAY + timedelta(days=random.randrange(DAYS))
    if promised is not None:
        said = {name: value for name, value in said.items() if _allowed(promised, name, value)}
    return said


def _allowed(promised: Advertisement, name: str, value: Value) -> bool:
    return promised.induces({CLASS: promised.predicates[0].operand, name: value})  # type: ignore[dict-item]


def _class(random: Random) -> Predicate:
    return predicate(CLASS, Op.EQ, CLASSES[random.random() < 0.25])


def _range(random: Random, name: str, wide: bool) -> list[Predicate]:
    kind = random.random()
    if kind < 0.2 or (wide and kind < 0.5):
        return [predicate(name, Op.PRESENT, random.choice((Type.ANY, Type.INTEGER)))]
    if kind < 0.35 and not wide:
        return [predicate(name, Op.EQ, random.randint(0, RANGE_MAX))]
    if kind < 0.45 and not wide:
        return [predicate(name, Op.IN, sorted({random.randint(0, RANGE_MAX) for _ in range(3)}))]
    if kind < 0.7:
        op = random.choice((Op.GE, Op.LE, Op.GT, Op.LT))
        return [predicate(name, op, random.choice((2, 4, 5, 7)))]
    low = random.choice((0, 1, 3)) if wide else random.choice((0, 2, 4, 6))
    return [predicate(name, Op.GE, low), predicate(name, Op.LE, low + random.choice((1, 3, 6)))]


def _name(random: Random) -> Predicate:
    kind = random.random()
    if kind < 0.4:
        return predicate("name", Op.EQ, random.choice(NAMES))
    if kind < 0.7:
        return predicate("name", Op.PREFIX, random.choice(("a", "ab", "b")))
    if kind < 0.85:
        return predicate("name", Op.IN, sorted(random.sample(NAMES, 3)))
    return predicate("name", Op.PRESENT, Type.STRING)
