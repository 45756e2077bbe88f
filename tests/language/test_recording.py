"""What a log says of messages can be judged without the language: every type, every operand."""

import json
import math
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from broker_runtime.language import (
    CustomOperator,
    Op,
    Predicate,
    Subscription,
    parse_subscription,
    predicate,
    register_operator,
    unregister_operator,
)
from broker_runtime.language.recording import recorded_content, recorded_filter
from broker_runtime.language.values import Value
from tests.language.strategies import contents, subscriptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "type_", "written"),
    [
        ("a 'b'\n", "texts", "a 'b'\n"),
        ("", "texts", ""),
        (0, "integers", 0),
        (2**63 - 1, "integers", 2**63 - 1),
        (-(2**63), "integers", -(2**63)),
        (2**63, "floats", 2.0**63),
        (-(2**63) - 1, "floats", -(2.0**63)),
        (10**400, "floats", None),
        (0.5, "floats", 0.5),
        (1.0, "floats", 1.0),
        (math.nan, "floats", None),
        (math.inf, "floats", None),
        (-math.inf, "floats", None),
        (datetime(2008, 8, 12, 0, 0, 0, 500_000, UTC), "dates", 1218499200.5),
        (datetime(1, 1, 1, tzinfo=UTC), "dates", -62135596800.0),
        (True, "flags", True),
        (False, "flags", False),
    ],
)
def test_each_value_stands_under_its_type(value: Value, type_: str, written: object) -> None:
    fields = recorded_content({"class": "X", "a": value})
    assert json.dumps(fields) == json.dumps(
        {"class": "X", type_: {"a": written}}
    )  # tells 1, 1.0 and true apart


def test_the_class_stands_alone() -> None:
    assert recorded_content({"class": "X"}) == {"class": "X"}


def test_a_class_that_is_no_string_is_printed_and_stands_with_the_others() -> None:
    assert recorded_content({"class": 5, "a": 6}) == {"class": "5", "integers": {"class": 5, "a": 6}}


def parts(text: str) -> dict[str, object]:
    fields = recorded_filter(parse_subscription(f"[class,eq,'X'],{text}", now=NOW))
    (of_class, asked) = fields["filter"]  # type: ignore[misc]
    assert of_class == {"attribute": "class", "op": "eq", "texts": ["X"]}
    return asked  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a,eq,'x']", {"op": "eq", "texts": ["x"]}),
        ("[a,=,5]", {"op": "eq", "numbers": [5]}),
        ("[a,neq,2.5]", {"op": "neq", "numbers": [2.5]}),
        ("[a,<,1e30]", {"op": "<", "numbers": [1e30]}),
        ("[a,<=,inf]", {"op": "<=", "numbers": [None]}),
        (f"[a,>,{10**30}]", {"op": ">", "numbers": [1e30]}),
        ("[a,>=,'2008-08-12']", {"op": ">=", "dates": [1218499200.0]}),
        ("[a,eq,true]", {"op": "eq", "flags": [True]}),
        ("[a,str-prefix,'x']", {"op": "str-prefix", "texts": ["x"]}),
        ("[a,str-postfix,'x']", {"op": "str-postfix", "texts": ["x"]}),
        ("[a,str-contains,'x']", {"op": "str-contains", "texts": ["x"]}),
        ("[a,in,{2,1,2.5}]", {"op": "in", "numbers": [1, 2, 2.5]}),
        ("[a,in,{'2008-08-12','2008-08-13'}]", {"op": "in", "dates": [1218499200.0, 1218585600.0]}),
        ("[a,isPresent,*]", {"op": "isPresent", "type": "*"}),
        ("[a,isPresent,@BOOLEAN]", {"op": "isPresent", "type": "@BOOLEAN"}),
        ("[a,eq,$X]", {"op": "eq"}),
    ],
)
def test_each_predicate_stands_in_parts(text: str, expected: dict[str, object]) -> None:
    assert parts(text) == {"attribute": "a", **expected}


def test_a_registered_operator_stands_under_its_name() -> None:
    near = CustomOperator("near", lambda value, operand: value == operand)
    register_operator(near)
    try:
        assert parts("[a,NEAR,5]") == {"attribute": "a", "op": "near", "numbers": [5]}
    finally:
        unregister_operator("near")


@given(contents)
def test_any_content_is_json_and_no_attribute_is_missing(content: dict[str, Value]) -> None:
    fields = recorded_content(content)
    written = json.loads(msgspec.json.encode(fields))
    assert written == fields
    assert isinstance(fields.pop("class"), str)
    recorded = [name for values in fields.values() for name in values]  # type: ignore[attr-defined]
    plain_class = isinstance(content["class"], str)
    assert sorted(recorded) == sorted(name for name in content if name != "class" or not plain_class)


@given(subscriptions)
def test_any_filter_is_json_and_no_predicate_is_missing(subscription: Subscription) -> None:
    fields = recorded_filter(subscription)
    assert json.loads(msgspec.json.encode(fields)) == fields
    assert parse_subscription(str(fields["text"]), now=NOW) == subscription
    asked = [(each["attribute"], each["op"]) for each in fields["filter"]]  # type: ignore[attr-defined]
    assert asked == [(each.attribute, _name(each)) for each in subscription.predicates]


def _name(wanted: Predicate) -> str:
    return wanted.op.value if isinstance(wanted.op, Op) else wanted.op.name


def test_predicates_that_programs_make_are_no_different() -> None:
    wanted = Subscription((predicate("class", Op.IN, ("Y", "X")),))
    assert recorded_filter(wanted)["filter"] == [{"attribute": "class", "op": "in", "texts": ["X", "Y"]}]
