"""Decides what generated publications say and what subscriptions ask for, and which fit together.

Whether they fit is asked of the runtime's own language, so that the truth does not share code with what is
checked against it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from broker_runtime.language import (
    CLASS,
    Op,
    Predicate,
    Subscription,
    Type,
    Value,
    Variable,
    predicate,
    print_subscription,
)
from tests.spark.generator.options import Options

WORDS: Final = ("YHOO", "MSFT", "IBM", "ORCL", "Zürich", "Toronto", "it's", "Yonge", "MS", 'a"b', "ÉOLE", "5")
NAMES: Final = ("symbol", "price", "volume", "city", "date", "halted")
KINDS: Final = ("text", "float", "integer", "text", "date", "flag")
SERIAL: Final = "serial"  # no filter asks for it
FIRST_DAY: Final = 829_267_200  # 12-Apr-96
DAY_S: Final = 86_400
REGISTERED: Final = "near"  # an operator that only the programs of the run know
NEAR: Final = 25.0


@dataclass(frozen=True, slots=True)
class Content:
    """One content: its class, its values, and its part of a publish line, open for the serial number."""

    class_: str
    values: dict[str, Value]
    before_serial: str
    after_serial: str


@dataclass(frozen=True, slots=True)
class Filter:
    text: str
    fields: str  # `"text":…,"filter":…` of a subscribe line
    subscription: Subscription
    near: float | None = None  # operand of the registered operator: the analysis cannot judge it

    @property
    def judged(self) -> bool:
        return self.near is None

    def matches(self, content: Content) -> bool:
        if self.near is not None:
            price = content.values.get("price")
            if not isinstance(price, float) or not abs(price - self.near) <= NEAR:
                return False
        return bool(self.subscription.matches(content.values))


def attribute_name(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"x{number}"


def class_names(options: Options) -> list[str]:
    return ["STOCK", *(f"C{number}" for number in range(1, max(1, options.classes)))]


def contents_of(options: Options, random: Random) -> list[Content]:
    classes = class_names(options)
    return [
        _content(classes[number % len(classes)], options, random)
        for number in range(max(options.contents, len(classes)))
    ]


def _content(class_: str, options: Options, random: Random) -> Content:
    values: dict[str, Value] = {CLASS: class_}
    for number in range(options.attributes):
        if random.random() < 0.9:
            kind = KINDS[number % len(KINDS)]
            if random.random() < 0.05:
                kind = random.choice(KINDS)  # an attribute may have a value of another kind
            values[attribute_name(number)] = _value(kind, random)
    by_type: dict[str, dict[str, Any]] = {"integers": {}}
    for name, value in values.items():
        if name != CLASS:
            type_, plain = _recorded(value)
            by_type.setdefault(type_, {})[name] = plain
    by_type["integers"][SERIAL] = "SERIAL"
    text = _json({CLASS: class_, **by_type})[1:-1]
    before, after = text.split('"SERIAL"')
    return Content(class_, values, before, after)


def _value(kind: str, random: Random) -> Value:
    if kind == "text":
        return random.choice(WORDS)
    if kind == "float":
        return math.nan if random.random() < 0.03 else round(random.uniform(0, 100), 2)
    if kind == "integer":
        return 1 << 70 if random.random() < 0.03 else random.randrange(1000)
    if kind == "date":
        return datetime.fromtimestamp(FIRST_DAY + DAY_S * random.randrange(100), UTC)
    return random.random() < 0.5


def _recorded(value: Value) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "flags", value
    if isinstance(value, str):
        return "texts", value
    if isinstance(value, datetime):
        return "dates", value.timestamp()
    if isinstance(value, int):
        return ("integers", value) if abs(value) < 1 << 63 else ("floats", float(value))
    return "floats", None if math.isnan(value) else value


def filter_of(options: Options, random: Random) -> Filter:
    class_ = random.choice(class_names(options))
    predicates = [predicate(CLASS, Op.EQ, class_)]
    wanted = min(options.attributes, random.choice((0, 1, 1, 2)))
    for number in random.sample(range(options.attributes), wanted):
        predicates += _predicates(attribute_name(number), KINDS[number % len(KINDS)], random)
    if random.random() < 0.05:
        predicates[0] = predicate(CLASS, Op.PREFIX, class_[:1])
    return _filter(predicates)


def unjudged_filter(options: Options, random: Random) -> Filter:
    near = round(random.uniform(20, 80), 2)
    plain = _filter([predicate(CLASS, Op.EQ, random.choice(class_names(options)))])
    text = f"{plain.text},[price,{REGISTERED},{near}]"
    parts = json.loads(f"{{{plain.fields}}}")["filter"]
    parts.append({"attribute": "price", "op": REGISTERED, "numbers": [near]})
    return Filter(text, _json({"text": text, "filter": parts})[1:-1], plain.subscription, near)


def _filter(predicates: list[Predicate]) -> Filter:
    subscription = Subscription(predicates)
    text = print_subscription(subscription)
    parts = [_recorded_predicate(each) for each in subscription.predicates]
    return Filter(text, _json({"text": text, "filter": parts})[1:-1], subscription)


def _recorded_predicate(each: Predicate) -> dict[str, Any]:
    assert isinstance(each.op, Op)
    fields: dict[str, Any] = {"attribute": each.attribute, "op": each.op.value}
    if isinstance(each.operand, Type):
        return {**fields, "type": each.operand.value}
    values = each.operand if isinstance(each.operand, tuple) else (each.operand,)
    operands = [_recorded(value) for value in values if not isinstance(value, Variable)]
    list_ = {"integers": "numbers", "floats": "numbers"}.get(operands[0][0], operands[0][0])
    return {**fields, list_: [plain for _, plain in operands]}


def _predicates(name: str, kind: str, random: Random) -> list[Predicate]:
    if random.random() < 0.1:  # integers beyond 64 bits are logged as floats: @INTEGER could not be judged
        return [predicate(name, Op.PRESENT, random.choice((Type.ANY, Type.STRING, Type.FLOAT, Type.DATE)))]
    if kind == "flag":
        return [predicate(name, random.choice((Op.EQ, Op.NEQ)), random.random() < 0.5)]
    if kind == "text":
        return [_text_predicate(name, random)]
    low, high = sorted((_number(kind, random), _number(kind, random)))
    shape = random.randrange(5)
    if shape == 0:
        return [predicate(name, Op.GE, low), predicate(name, Op.LE, high)]
    if shape == 1:
        return [predicate(name, random.choice((Op.GT, Op.GE)), low)]
    if shape == 2:
        return [predicate(name, random.choice((Op.LT, Op.LE)), high)]
    if shape == 3:
        return [predicate(name, Op.IN, [_number(kind, random) for _ in range(5)])]
    return [predicate(name, Op.NEQ, low)]


def _number(kind: str, random: Random) -> Any:
    if kind == "date":
        return datetime.fromtimestamp(FIRST_DAY + DAY_S * random.randrange(100), UTC)
    return random.randrange(1000) if kind == "integer" else round(random.uniform(0, 100), 2)


def _text_predicate(name: str, random: Random) -> Predicate:
    word = random.choice(WORDS)
    shape = random.randrange(7)
    if shape < 2:
        return predicate(name, Op.EQ, word)
    if shape == 2:
        return predicate(name, Op.IN, random.sample(WORDS, 4))
    if shape == 3:
        return predicate(name, Op.PREFIX, word[:1])
    if shape == 4:
        return predicate(name, random.choice((Op.POSTFIX, Op.CONTAINS)), word[-1:])
    return predicate(name, random.choice((Op.NEQ, Op.LT, Op.GE)), word)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
