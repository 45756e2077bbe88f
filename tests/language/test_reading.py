"""Values, quotes, operators, dates, durations and environment names are read as the language says."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from broker_runtime.language import (
    CustomOperator,
    LanguageError,
    Op,
    Variable,
    check_id,
    parse_duration,
    parse_publication,
    parse_subscription,
    predicate,
    print_value,
    register_operator,
    unregister_operator,
    write_duration,
)

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)
NAMES = {"MY_LOC": 25, "RADIUS": 1.5, "OPENED": datetime(2024, 1, 1, tzinfo=UTC), "ME": "Ada", "SELF-ID": "x"}


def value(text):
    content = parse_publication(f"[class,c],[x,{text}]", environment=NAMES, now=NOW)
    return content["x"]


def predicates(text):
    subscription = parse_subscription(f"[class,eq,c],[x,{text}]", environment=NAMES, now=NOW)
    return list(subscription.predicates[1:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12), ("+12", 12), ("-7", -7), ("007", 7), ("9" * 40, int("9" * 40)),
        ("2.5", 2.5), ("-2.5", -2.5), ("5.", 5.0), (".5", 0.5), ("1e3", 1000.0), ("1E-3", 0.001),
        ("inf", math.inf), ("+inf", math.inf), ("-Inf", -math.inf),
        ("true", True), ("False", False), ("TRUE", True),
        ("STOCK", "STOCK"), ("job status", "job status"), ("job \n status", "job status"),
        ("job-status", "job-status"), ("a.b_c-d", "a.b_c-d"), ("Zürich", "Zürich"), ("F-16", "F-16"),
        ("now-playing", "now-playing"), ("nowhere", "nowhere"), ("COVID-19", "COVID-19"),
        ("'true'", "true"), ("'12'", "12"), ("'nan'", "nan"), ("'$X'", "$X"), ("'now'", "now"),
        ("'@STRING'", "@STRING"), ("''", ""), ("' a '", " a "), ("'a,b][c'", "a,b][c"),
    ],
)  # fmt: skip
def test_a_value_keeps_its_type(text, expected):
    read = value(text)
    assert read == expected
    assert type(read) is type(expected)


def test_a_bare_nan_is_a_float():
    assert math.isnan(value("NaN"))


@pytest.mark.parametrize(
    "text",
    ["'STOCK'", '"STOCK"', "‘STOCK’", "“STOCK”", "’STOCK’", "‘STOCK‘", "”STOCK”", "‘STOCK'", '“STOCK"',
     "'STOCK' @STRING", "'STOCK'@string"],
)  # fmt: skip
def test_every_kind_of_quote_makes_a_string(text):
    assert value(text) == "STOCK"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'it\'s'", "it's"), ("'it''s'", "it's"), ('"it\'s"', "it's"), ('"say ""hi"""', 'say "hi"'),
        ("“it's”", "it's"), ("‘rock 'n' roll’", "rock 'n' roll"), (r"‘it\’s’", "it’s"),
        (r"'\n\t\r\\\"'", '\n\t\r\\"'), (r"'\x41é\U0001F600'", "Aé😀"), (r"'\x00'", "\0"),
        ("'’'", "’"), ('"“"', "“"), ("'\"\"'", '""'),
    ],
)  # fmt: skip
def test_quotes_and_escapes_inside_a_string(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'12-Apr-96'", (1996, 4, 12)), ("'12-Aug-2008'", (2008, 8, 12)), ("'1-jan-69'", (1969, 1, 1)),
        ("'31-DEC-68'", (2068, 12, 31)), ("'12-Aug-08 14:30:05'", (2008, 8, 12, 14, 30, 5)),
        ("'12-Aug-08 14:30'", (2008, 8, 12, 14, 30)), ("'2008-08-12'", (2008, 8, 12)),
        ("'2008-08-12T10:20:30.123456Z'", (2008, 8, 12, 10, 20, 30, 123456)),
        ("'2008-08-12T10:20:30.5'", (2008, 8, 12, 10, 20, 30, 500000)),
        ("'2008-08-12T10:20:30.123456789Z'", (2008, 8, 12, 10, 20, 30, 123456)),
        ("'2008-08-12T00:30:00+01:00'", (2008, 8, 11, 23, 30)),
        ("'2008-08-12 00:30-0130'", (2008, 8, 12, 2, 0)),
        ("12-Apr-96", (1996, 4, 12)), ("2008-08-12T10:20:30Z", (2008, 8, 12, 10, 20, 30)),
        ("'2008-08-12'@DATE", (2008, 8, 12)), ("‘12-Apr-96’", (1996, 4, 12)),
    ],
)  # fmt: skip
def test_a_text_in_the_form_of_a_date_is_a_date_in_utc(text, expected):
    assert value(text) == datetime(*expected, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2008", "1234-56-78", "12-Foo-08", "2008-8-12", "12-Apr-96 ", "2008-08-12T25:00", "٢٠٠٨-08-12"]
)
def test_a_quoted_text_without_the_full_form_of_a_date_is_a_string(text):
    assert value(f"'{text}'") == text


def test_a_date_look_alike_is_a_string_on_demand():
    assert value("'2008-08-12'@STRING") == "2008-08-12"
    assert print_value("2008-08-12") == "'2008-08-12'@STRING"
    assert print_value("31-Feb-2008") == "'31-Feb-2008'@STRING"


def test_dates_print_in_utc_with_microseconds_only_when_needed():
    assert print_value(datetime(2008, 8, 12, tzinfo=UTC)) == "'2008-08-12T00:00:00Z'"
    assert print_value(datetime(8, 8, 12, 1, 2, 3, 40, UTC)) == "'0008-08-12T01:02:03.000040Z'"


ALIKE = [
    (Op.EQ, "eq = == EQ str-eq"),
    (Op.NEQ, "neq <> != ≠ str-neq"),
    (Op.LT, "< str-lt STR-LT"),
    (Op.LE, "<= ≤ str-le"),
    (Op.GT, "> str-gt"),
    (Op.GE, ">= ≥ str-ge"),
    (Op.PREFIX, "str-prefix"),
    (Op.POSTFIX, "str-postfix str-suffix"),
    (Op.CONTAINS, "str-contains Str-Contains"),
]


@pytest.mark.parametrize(("op", "name"), [(op, name) for op, names in ALIKE for name in names.split()])
def test_every_spelling_of_an_operator_is_the_same_predicate(op, name):
    assert predicates(f"{name},'abc'") == [predicate("x", op, "abc")]


def test_before_and_after_are_the_order_of_dates():
    assert predicates("before,'2008-08-12'") == predicates("<,'12-Aug-2008'")
    assert predicates("AFTER, now - 1h") == predicates(">,'2024-02-29T11:00:00Z'")


def test_the_operand_of_a_string_operator_is_never_a_date():
    assert predicates("str-prefix,'2008-08-12'") == [predicate("x", Op.PREFIX, "2008-08-12")]
    assert predicates("str-prefix,‘2008-08-12’") == [predicate("x", Op.PREFIX, "2008-08-12")]


@pytest.mark.parametrize("members", ["{1, 2,3}", "(1,2,3)", "[3,2,1]", "1,2,3", "{ 1 ,2, 3 }", "{1,1.0,2,3}"])
def test_a_list_of_members_may_stand_in_any_brackets(members):
    assert predicates(f"IN,{members}") == [predicate("x", Op.IN, (1, 2, 3))]


def test_members_may_be_quoted_or_bare_or_dates():
    assert predicates('in,{‘a’, b c, "d"}') == [predicate("x", Op.IN, ("a", "b c", "d"))]
    assert predicates("in,'2008-08-12'") == [predicate("x", Op.IN, (datetime(2008, 8, 12, tzinfo=UTC),))]


@pytest.mark.parametrize("bounds", ["10, 20", "10 AND 20", "10 and 20", "10\nAND\n20"])
def test_between_is_two_predicates(bounds):
    assert predicates(f"BETWEEN,{bounds}") == [predicate("x", Op.GE, 10), predicate("x", Op.LE, 20)]


@pytest.mark.parametrize("bounds", ["'a','z and y'", "'a' AND 'z and y'", "a AND 'z and y'"])
def test_between_takes_strings(bounds):
    assert predicates(f"between,{bounds}") == [predicate("x", Op.GE, "a"), predicate("x", Op.LE, "z and y")]


def test_between_takes_dates_and_variables():
    low, high = predicates("between, now - 1h AND now")
    assert (low.operand, high.operand) == (NOW - timedelta(hours=1), NOW)
    low, high = predicates("between, $L - 5, $L + 5")
    assert (low.operand, high.operand) == (Variable("L", -5), Variable("L", 5))


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("$X", Variable("X")), ("$x_1", Variable("x_1")), ("$L +5", Variable("L", 5)),
        ("$L-5", Variable("L", -5)), ("$L + 2.5", Variable("L", 2.5)), ("$L + RADIUS", Variable("L", 1.5)),
        ("$T - 10s", Variable("T", timedelta(seconds=-10))), ("$T+1h-1h", Variable("T")),
        ("$T + 1h 30min", Variable("T", timedelta(minutes=90))),
    ],
)  # fmt: skip
def test_a_variable_may_be_shifted(text, variable):
    assert predicates(f"=,{text}") == [predicate("x", Op.EQ, variable)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MY_LOC", 25), ("MY_LOC + 10", 35), ("MY_LOC-10", 15), ("MY_LOC - 10 + 2", 17), ("ME", "Ada"),
        ("MY_LOC + RADIUS", 26.5), ("MY_LOC-RADIUS", 23.5), ("MY_LOC + 1e1", 35.0), ("SELF-ID", "x"),
        ("now", NOW), ("NOW", NOW), ("now+1hr", NOW + timedelta(hours=1)),
        ("NOW - 1h", NOW - timedelta(hours=1)),
        ("now-1hr", NOW - timedelta(hours=1)), ("now - 2 months", NOW - timedelta(days=60)),
        ("OPENED + 1 week", datetime(2024, 1, 8, tzinfo=UTC)), ("YOUR_LOC", "YOUR_LOC"),
        ("MY_LOC_2", "MY_LOC_2"),
    ],
)  # fmt: skip
def test_names_of_the_environment_are_folded(text, expected):
    assert value(text) == expected


def test_a_value_of_the_environment_in_another_zone_becomes_utc():
    content = parse_publication("[class,c],[t,HERE]", environment={"HERE": datetime(2024, 1, 1)})  # noqa: DTZ001
    assert content["t"] == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10s", timedelta(seconds=10)), ("500ms", timedelta(milliseconds=500)),
        ("3us", timedelta(microseconds=3)),
        ("10 min", timedelta(minutes=10)), ("5m", timedelta(minutes=5)), ("1h", timedelta(hours=1)),
        ("1hr", timedelta(hours=1)), ("2 days", timedelta(days=2)), ("1 week", timedelta(days=7)),
        ("2 months", timedelta(days=60)), ("1 year", timedelta(days=365)), ("1.5h", timedelta(minutes=90)),
        ("1h30min", timedelta(minutes=90)), (" 1h 30 min ", timedelta(minutes=90)), ("0s", timedelta()),
    ],
)  # fmt: skip
def test_durations(text, expected):
    assert parse_duration(text) == expected
    assert parse_duration(write_duration(expected)) == expected


@pytest.mark.parametrize("text", ["", "10", "s", "10 parsecs", "-5s", "1h,", "9999999999 years", "1h now"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(LanguageError, match="line 1, column 1"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "[class,c],[x,1]", " [class,c] , [x,1] ", "[class,c][x,1]", "\n[class,\nc]\n\t[x\n,1]\n",
        "[class,c],[x,1];", "([class,c],[x,1])", "( [class,c] [x,1] ) ;", "(([class,c],[x,1]))",
        "['class',c],[\"x\",1]", "[x,1],[class,c]",
    ],
)  # fmt: skip
def test_the_same_publication_may_be_laid_out_in_many_ways(text):
    assert parse_publication(text) == {"class": "c", "x": 1}


@pytest.mark.parametrize("name", ["x.y-z", "_time", "größe", "日本", "a1"])
def test_an_attribute_may_be_bare(name):
    assert parse_publication(f"[class,c],[{name},1]")[name] == 1


@pytest.mark.parametrize("name", ["job name", "1st", "", "a,b", "2008-08-12", "$X", "it's"])
def test_any_other_attribute_is_quoted_and_none_is_empty(name):
    text = f'[class,c],["{name}",1]'
    if name:
        assert parse_publication(text)[name] == 1
    else:
        with pytest.raises(LanguageError, match="an attribute needs a name"):
            parse_publication(text)


def test_a_registered_operator_is_read_in_any_case():
    near = CustomOperator("near-to", lambda have, want: abs(have - want) < 5)
    register_operator(near)
    try:
        assert predicates("NEAR-to, MY_LOC") == [predicate("x", near, 25)]
    finally:
        unregister_operator("near-to")
    with pytest.raises(LanguageError, match="unknown operator 'near-to'"):
        predicates("near-to, 5")


@pytest.mark.parametrize("text", ["B1", "0", "broker-1.site_2", "x" * 64])
def test_an_id_is_given_back(text):
    assert check_id(text) == text


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "empty"),
        ("-b", 1, "begins with"),
        ("a b", 2, "no ' '"),
        ("x" * 65, 65, "at most 64"),
        ("é", 1, "begins"),
    ],
)
def test_a_wrong_id_is_pointed_at(text, column, message):
    with pytest.raises(LanguageError, match=message) as refused:
        check_id(text)
    assert refused.value.problems[0].column == column
