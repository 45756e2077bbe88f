"""Decides whether a publication's content matches a subscription's filter, both as the log has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.spark.plain.reading import LANES, NOTHING

Content = tuple[dict[str, Any], ...]  # texts and class, integers, floats, dates, flags
Test = Callable[[Content], bool]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda v, o: v == o,
    "neq": lambda v, o: v != o,
    "<": lambda v, o: v < o,
    "<=": lambda v, o: v <= o,
    ">": lambda v, o: v > o,
    ">=": lambda v, o: v >= o,
    "str-prefix": lambda v, o: v.startswith(o),
    "str-postfix": lambda v, o: v.endswith(o),
    "str-contains": lambda v, o: o in v,
}
PRESENT = {
    "*": (0, 1, 2, 3, 4),
    "@STRING": (0,),
    "@INTEGER": (1,),
    "@FLOAT": (1, 2),
    "@DATE": (3,),
    "@BOOLEAN": (4,),
}
OPERAND_TYPES = {"texts": (str,), "numbers": (int, float), "dates": (int, float), "flags": (bool,)}
OPERANDS = {"texts": (0,), "numbers": (1, 2), "dates": (3,), "flags": (4,)}


def content_of(line: dict[str, Any]) -> Content:
    texts, *others = (line.get(lane, NOTHING) for lane in LANES)
    if "class" in line and not any("class" in other for other in others):  # else it is no text
        texts = {**texts, "class": line["class"]}
    return (texts, *others)


class CannotJudge(Exception):
    """Nobody but the program itself knows what this predicate means."""


def test_of(part: Any) -> Test:
    """What one predicate of a filter asks."""
    if not isinstance(part, dict) or not isinstance(part.get("attribute"), str):
        raise CannotJudge("a predicate that cannot be read")
    attribute, op = part["attribute"], part.get("op")
    if op == "isPresent":
        lanes = PRESENT.get(part.get("type", ""))
        if lanes is None:
            raise CannotJudge(f"isPresent {part.get('type')}")
        return lambda content: any(attribute in content[lane] for lane in lanes)
    if op != "in" and op not in COMPARISONS:
        raise CannotJudge(f"operator {op}")
    named = next((name for name in OPERANDS if isinstance(part.get(name), list) and part[name]), None)
    if named is None or not all(type(each) in OPERAND_TYPES[named] for each in part[named]):
        raise CannotJudge(f"{op} without an operand that can be read")
    if op.startswith("str-") and named != "texts":
        raise CannotJudge(f"{op} with {named}")
    return comparison(attribute, op, OPERANDS[named], part[named])


def class_of(parts: list[Any]) -> str | None:
    """The class that a filter asks for, when it asks for one."""
    for part in parts:
        if isinstance(part, dict) and (part.get("attribute"), part.get("op")) == ("class", "eq"):
            texts = part.get("texts")
            return texts[0] if isinstance(texts, list) and texts and isinstance(texts[0], str) else None
    return None


def comparison(attribute: str, op: str, lanes: tuple[int, ...], operands: list[Any]) -> Test:
    if op == "in":
        members = frozenset(operands)
        compare: Callable[[Any, Any], bool] = lambda v, o: v in members  # noqa: E731
    else:
        compare = COMPARISONS[op]
    operand = operands[0]
    if len(lanes) == 1:
        (lane,) = lanes

        def test(content: Content) -> bool:
            value = content[lane].get(attribute)
            return value is not None and compare(value, operand)

        return test

    def test_number(content: Content) -> bool:
        value = content[1].get(attribute)
        if value is None:
            value = content[2].get(attribute)
        return value is not None and compare(value, operand)

    return test_number
