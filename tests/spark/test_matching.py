"""The analysis finds a match where the language does, from what the log says of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import product

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from broker_runtime.language import (
    CustomOperator,
    Subscription,
    parse_publication,
    parse_subscription,
    register_operator,
    unregister_operator,
)
from broker_runtime.language.recording import recorded_content, recorded_filter
from panda_spark.gold.matching import (
    CONTENT,
    class_satisfies,
    of_attributes,
    of_class,
    satisfies,
    unjudged,
)
from panda_spark.schema import FIELDS

OPERANDS = ["5", "5.5", "-3", "0", "1e300", "'abc'", "'b'", "''", "'größe'", "true", "false", "2008-08-12"]
VALUES = [
    *OPERANDS,
    "-0.0",
    "nan",  # null in the log, as are infinities: these would compare, and the log does not tell
    "4.999999999999999",
    "9007199254740991",
    "'5'",
    "'abcabc'",
    "'ABC'",
    "'true'",
    "'größer'",
    "'\U0001f600'",
    "'\uffff'",
    "2008-08-12T00:00:00.000001Z",
    "1969-12-31",
]
NUMBERS = {"5", "5.5", "-3", "0", "1e300"}
TEXTS = {each for each in OPERANDS if each.startswith("'")}
BOOLEANS = {"true", "false"}
TYPES = ["*", "@STRING", "@INTEGER", "@FLOAT", "@DATE", "@BOOLEAN"]

ONE_ATTRIBUTE = [
    *(f"[x,{op},{operand}]" for op, operand in product(("eq", "neq"), OPERANDS)),
    *(
        f"[x,{op},{operand}]"
        for op, operand in product(("<", "<=", ">", ">="), OPERANDS)
        if operand not in BOOLEANS
    ),
    *(f"[x,{op},{operand}]" for op, operand in product(("str-prefix", "str-postfix", "str-contains"), TEXTS)),
    *(f"[x,isPresent,{type_}]" for type_ in TYPES),
    "[x,in,{5, 0, -3.5}]",
    "[x,in,{'abc', 'größe'}]",
    "[x,in,{true}]",
    "[x,in,{2008-08-12, 1969-12-31}]",
    "[x,>,1],[x,<,5.2]",
    "[x,>,5],[x,isPresent,*],[x,<,6],[x,neq,5.4]",
    "[x,isPresent,@FLOAT],[x,isPresent,@INTEGER],[x,>=,5],[x,<=,5],[x,in,{5, 6}]",
    "[y,isPresent,*]",
    "[x,isPresent,*],[y,eq,1]",
    "[x,isPresent,*],[x,isPresent,*],[x,isPresent,*],[y,isPresent,*]",
    "",
]
ON_CLASS = [
    "[class,eq,'STOCK']",
    "[class,eq,'stock']",
    "[class,neq,'STOCK']",
    "[class,str-prefix,'STO']",
    "[class,str-postfix,'K']",
    "[class,str-contains,'OC']",
    "[class,in,{'STOCK', 'BOND'}]",
    "[class,<,'T']",
    "[class,>=,'T']",
    "[class,isPresent,*]",
    "[class,isPresent,@STRING]",
    "[class,isPresent,@INTEGER]",
    "[class,eq,5]",
    "[class,eq,'STOCK'],[class,neq,'BOND']",
    "[class,str-prefix,'S'],[class,str-postfix,'X']",
]
Parsed = Mapping[str, object]


def schema(*names: str) -> StructType:
    return StructType([FIELDS[name] for name in names])


def filters(spark: SparkSession, wanted: list[Subscription]) -> DataFrame:
    logged = [json.dumps({"text": str(n), **_only(recorded_filter(each))}) for n, each in enumerate(wanted)]
    frame = spark.createDataFrame([(text,) for text in logged], "said string")
    return frame.select(F.from_json("said", schema("text", "filter")).alias("said")).select("said.*")


def _only(fields: Mapping[str, object]) -> dict[str, object]:
    return {"filter": fields["filter"]}


def contents(spark: SparkSession, said: list[Parsed]) -> DataFrame:
    logged = [json.dumps({"id": str(n), **recorded_content(each)}) for n, each in enumerate(said)]  # type: ignore[arg-type]
    frame = spark.createDataFrame([(text,) for text in logged], "said string")
    return frame.select(F.from_json("said", schema("id", *CONTENT)).alias("said")).select("said.*")


def matches(spark: SparkSession, wanted: list[Subscription], said: list[Parsed]) -> set[tuple[int, int]]:
    """By the analysis: numbers of filters and contents that belong together."""
    asked = filters(spark, wanted).select(
        F.col("text").alias("asked"),
        of_class(F.col("filter")).alias("on_class"),
        of_attributes(F.col("filter")).alias("on_attributes"),
    )
    met = contents(spark, said).crossJoin(F.broadcast(asked))
    found = met.where(class_satisfies(F.col("on_class"), F.col("class")) & satisfies(F.col("on_attributes")))
    return {(int(row.asked), int(row.id)) for row in found.select("asked", "id").collect()}


def agree(spark: SparkSession, wanted: list[Subscription], said: list[Parsed]) -> None:
    due = {
        (n, m)
        for n, each in enumerate(wanted)
        for m, content in enumerate(said)
        if each.matches(content)  # type: ignore[arg-type]
    }
    found = matches(spark, wanted, said)
    wrong = sorted(due ^ found)
    assert [(wanted[n], said[m], (n, m) in due) for n, m in wrong] == []
    assert due


def test_every_operator_agrees_with_the_language_on_values_of_every_kind(spark: SparkSession) -> None:
    said = [parse_publication(f"[class,'C'],[x,{value}]") for value in VALUES]
    said += [parse_publication("[class,'C']"), parse_publication("[class,'C'],[y,1],[z,'abc']")]
    wanted = [parse_subscription(f"[class,eq,'C']{',' * bool(text)}{text}") for text in ONE_ATTRIBUTE]
    agree(spark, wanted, said)


def test_every_predicate_on_the_class_agrees_with_the_language(spark: SparkSession) -> None:
    classes = ["STOCK", "BOND", "STO", "K", "", "T", "größe", "stock"]
    said = [parse_publication(f"[class,'{each}'],[x,5]") for each in classes]
    agree(spark, [parse_subscription(text) for text in ON_CLASS], said)
    more = [parse_subscription(f"{text},[x,>,4],[x,<,6]") for text in ON_CLASS]
    agree(spark, more, said)


def test_a_date_is_the_same_moment_in_the_log(spark: SparkSession) -> None:
    moments = [datetime(2008, 8, 12, 10, 20, 30, micro, UTC) for micro in (0, 1, 999_999)]
    said: list[Parsed] = [{"class": "C", "due": each} for each in moments]
    wanted = [
        parse_subscription(f"[class,eq,'C'],[due,{op},2008-08-12T10:20:30.000001Z]")
        for op in ("eq", "neq", "<", "<=", ">", ">=")
    ]
    agree(spark, wanted, said)


@pytest.fixture
def near() -> object:
    register_operator(CustomOperator("near", lambda value, operand: value == operand))
    yield
    unregister_operator("near")


@pytest.mark.usefixtures("near")
def test_what_a_filter_asks_for_is_told_to_be_unknown_where_the_log_does_not_say(spark: SparkSession) -> None:
    texts = [
        "[class,eq,'C'],[x,near,5]",
        "[class,eq,'C'],[x,eq,$X],[y,eq,$X]",
        "[class,eq,'C'],[x,<,inf]",
        "[class,eq,'C'],[x,isPresent,@DATE]",
        "[class,eq,'C'],[x,in,{1, 2}]",
    ]
    rows = filters(spark, [parse_subscription(text) for text in texts])
    why = {row.text: row.why for row in rows.select("text", unjudged(F.col("filter")).alias("why")).collect()}
    assert [why[str(n)] is None for n in range(len(texts))] == [False, False, False, True, True]
    assert "near" in why["0"]
