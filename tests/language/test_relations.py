"""Match, cover and overlap of every pair of operators on one attribute, written down as tables.

In a table, row and column are predicates on `x`; a cell says how the row relates to the column:
`=` both cover each other, `>` the row covers, `<` the column covers, `x` they overlap and neither covers,
`0` no value satisfies both.
"""

import math
from datetime import UTC, datetime
from itertools import product

import pytest

from broker_runtime.language import parse_advertisement, parse_subscription

DAY = "'2008-08-12'"

NUMBERS = """
                      eq  neq <   <=  >   >=  in  int flt any
    eq,5              =   0   0   <   0   <   <   x   <   <
    neq,5             .   =   >   x   >   x   x   x   <   <
    <,5               .   .   =   <   0   0   x   x   <   <
    <=,5              .   .   .   =   0   x   >   x   <   <
    >,5               .   .   .   .   =   <   0   x   <   <
    >=,5              .   .   .   .   .   =   x   x   <   <
    in,{4,5}          .   .   .   .   .   .   =   x   <   <
    isPresent,@INTEGER .  .   .   .   .   .   .   =   <   <
    isPresent,@FLOAT  .   .   .   .   .   .   .   .   =   <
    isPresent,*       .   .   .   .   .   .   .   .   .   =
"""

STRINGS = """
                      eq  neq <   <=  >   >=  pre pos con in  str any
    eq,'m'            =   0   0   <   0   <   <   <   <   <   <   <
    neq,'m'           .   =   >   x   >   x   x   x   x   x   <   <
    str-lt,'m'        .   .   =   <   0   0   0   x   x   x   <   <
    str-le,'m'        .   .   .   =   0   x   x   x   x   >   <   <
    str-gt,'m'        .   .   .   .   =   <   x   x   x   0   <   <
    str-ge,'m'        .   .   .   .   .   =   >   x   x   x   <   <
    str-prefix,'m'    .   .   .   .   .   .   =   x   <   x   <   <
    str-postfix,'m'   .   .   .   .   .   .   .   =   <   x   <   <
    str-contains,'m'  .   .   .   .   .   .   .   .   =   x   <   <
    in,{'l','m'}      .   .   .   .   .   .   .   .   .   =   <   <
    isPresent,@STRING .   .   .   .   .   .   .   .   .   .   =   <
    isPresent,*       .   .   .   .   .   .   .   .   .   .   .   =
"""

DATES = """
                      eq  neq bef <=  aft >=  in  dat any
    eq,D              =   0   0   <   0   <   <   <   <
    neq,D             .   =   >   x   >   x   x   <   <
    before,D          .   .   =   <   0   0   x   <   <
    <=,D              .   .   .   =   0   x   >   <   <
    after,D           .   .   .   .   =   <   0   <   <
    >=,D              .   .   .   .   .   =   x   <   <
    in,{D,'1-Jan-08'} .   .   .   .   .   .   =   <   <
    isPresent,@DATE   .   .   .   .   .   .   .   =   <
    isPresent,*       .   .   .   .   .   .   .   .   =
""".replace("D,'", DAY + ",'").replace(",D ", "," + DAY + " ")

BOOLEANS = """
                      eq  neq in  boo any
    eq,true           =   0   =   <   <
    neq,true          .   =   0   <   <
    in,{true}         .   .   =   <   <
    isPresent,@BOOLEAN .  .   .   =   <
    isPresent,*       .   .   .   .   =
"""

KINDS = {"numbers": NUMBERS, "strings": STRINGS, "dates": DATES, "booleans": BOOLEANS}
MIRRORED = {"=": "=", "<": ">", ">": "<", "x": "x", "0": "0"}

SAMPLES = {
    "numbers": [-math.inf, -1, 0.5, 4, 4.0, 4.5, 5, 5.0, 5.5, 6, 10**30, math.inf, math.nan],
    "strings": ["", "l", "m", "ma", "am", "ama", "mm", "n", "z", "5", "true", "2008-08-12"],
    "dates": [datetime(2008, month, day, tzinfo=UTC) for month, day in ((1, 1), (3, 3), (8, 12), (9, 9))],
    "booleans": [True, False],
}


def rows(table):
    lines = table.strip().splitlines()[1:]
    return [line.rsplit(maxsplit=len(lines)) for line in lines]


def cells():
    for kind, table in KINDS.items():
        names = [row[0].strip() for row in rows(table)]
        for name, *relations in rows(table):
            for other, relation in zip(names, relations, strict=True):
                if relation != ".":
                    yield pytest.param(kind, name.strip(), other, relation, id=f"{name} {relation} {other}")


def on_x(parse, predicate):
    return parse(f"[class,eq,c],[x,{predicate}]")


def relation_of(a, b, overlap):
    if not overlap:
        return "0"
    return {(True, True): "=", (True, False): ">", (False, True): "<", (False, False): "x"}[
        a.covers(b), b.covers(a)
    ]


@pytest.mark.parametrize(("kind", "row", "column", "relation"), list(cells()))
def test_the_relation_of_two_predicates(kind, row, column, relation):
    a, b = on_x(parse_subscription, row), on_x(parse_subscription, column)
    assert relation_of(a, b, a.overlaps(b)) == relation
    assert relation_of(b, a, b.overlaps(a)) == MIRRORED[relation]
    ad_a, ad_b = on_x(parse_advertisement, row), on_x(parse_advertisement, column)
    assert relation_of(ad_a, ad_b, ad_a.overlaps(b)) == relation
    assert ad_b.overlaps(a) == (relation != "0")


@pytest.mark.parametrize(("kind", "row", "column", "relation"), list(cells()))
def test_the_table_agrees_with_sampled_values(kind, row, column, relation):
    a, b = on_x(parse_subscription, row), on_x(parse_subscription, column)
    seen = {
        (a.matches(content), b.matches(content))
        for content in ({"class": "c", "x": v} for v in SAMPLES[kind])
    }
    assert ((True, True) in seen) == (relation != "0")
    if relation != "0":
        assert ((True, False) in seen) <= (relation in ">x")
        assert ((False, True) in seen) <= (relation in "<x")


def other_kinds():
    for kind, other in product(KINDS, KINDS):
        if kind < other:
            for a, b in product(rows(KINDS[kind]), rows(KINDS[other])):
                if "*" not in a[0] + b[0]:
                    yield a[0].strip(), b[0].strip()


@pytest.mark.parametrize(("a", "b"), list(other_kinds()))
def test_predicates_of_different_kinds_never_meet(a, b):
    a, b = on_x(parse_subscription, a), on_x(parse_subscription, b)
    assert relation_of(a, b, a.overlaps(b)) == "0"


PAIRS = [
    (">,10", ">", ">,20"),
    (">,10", ">", "eq,10.5"),
    (">,10", "0", "<,10"),
    (">=,10", "x", "<=,10"),
    (">,10],[x,<,20", ">", "between,11,19"),
    (">,10],[x,<,20", "0", ">,20"),
    ("isPresent,@INTEGER],[x,>,4", "=", "isPresent,@INTEGER],[x,>=,5"),
    ("isPresent,@INTEGER],[x,>,4],[x,<,5", "0", "isPresent,@INTEGER"),
    ("eq,1", "=", "eq,1.0"),
    ("eq,1", "0", "eq,true"),
    ("eq,'1'", "0", "eq,1"),
    ("str-prefix,'ab'", "<", "str-prefix,'a'"),
    ("str-prefix,'ab'", "0", "str-prefix,'b'"),
    ("str-postfix,'ba'", "<", "str-postfix,'a'"),
    ("str-postfix,'a'", "0", "str-postfix,'b'"),
    ("str-contains,'abc'", "<", "str-contains,'b'"),
    ("str-contains,'a'", "x", "str-contains,'b'"),
    ("str-prefix,'a'],[x,str-postfix,'z'", "x", "str-contains,'m'"),
    ("str-ge,'a'],[x,str-lt,'b'", "=", "str-prefix,'a'"),
    ("in,{'a','b'}", "x", "in,{'b','c'}"),
    ("in,{'a','b'}", "0", "in,{'c'}"),
    ("neq,'a'", "x", "neq,'b'"),
    ("after,'2008-08-11'", ">", "eq,'12-Aug-08'"),
    ("eq,$X", "=", "eq,$X"),
    ("eq,$X", "<", "isPresent,*"),
]


@pytest.mark.parametrize(("a", "relation", "b"), PAIRS)
def test_the_relation_of_conjunctions(a, relation, b):
    a, b = on_x(parse_subscription, a), on_x(parse_subscription, b)
    assert relation_of(a, b, a.overlaps(b)) == relation


def test_a_list_of_integers_covers_the_range_of_integers_but_also_takes_floats():
    members = on_x(parse_subscription, "in,{1,2,3}")
    integers = on_x(parse_subscription, "isPresent,@INTEGER],[x,between,1,3")
    assert members.covers(integers)
    assert not integers.covers(members)
    assert members.matches({"class": "c", "x": 1.0})


MATCHES = [
    ("eq,5", [5, 5.0], ["5", True, math.nan, 6]),
    ("eq,1", [1, 1.0], [True, "1"]),
    ("neq,5", [4, 5.5, math.inf], [5, 5.0, "5", "abc", True, math.nan]),
    ("<,5", [4.9, -math.inf], [5, "4", False, math.nan]),
    (">=,5", [5, 10**30, math.inf], [4.9, "6", math.nan]),
    ("between,1,2", [1, 1.5, 2], [0.9, 2.1, "1"]),
    ("in,{1,2}", [1, 2.0], [3, "1", True]),
    ("eq,true", [True], [1, "true", False]),
    ("neq,true", [False], [0, "false", True]),
    ("eq,'abc'", ["abc"], ["ABC", "abc ", 5]),
    ("<,'b'", ["a", "", "B"], ["b", "c", 0]),
    ("str-prefix,'ab'", ["ab", "abc"], ["a", "cab", 5]),
    ("str-postfix,'ab'", ["ab", "cab"], ["abc"]),
    ("str-contains,'ab'", ["ab", "cabc"], ["a b"]),
    ("before,'12-Aug-08'", [datetime(2008, 8, 11, tzinfo=UTC)], [datetime(2008, 8, 12, tzinfo=UTC), "a"]),
    ("isPresent,@INTEGER", [5, -(10**30)], [5.0, True, "5"]),
    ("isPresent,@FLOAT", [5, 5.0, math.nan], [True, "5"]),
    ("isPresent,@STRING", ["", "x"], [5]),
    ("isPresent,@DATE", [datetime(2008, 8, 12, tzinfo=UTC)], ["2008-08-12"]),
    ("isPresent,@BOOLEAN", [True, False], [1, "true"]),
    ("isPresent,*", [5, "", False, math.nan], []),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "satisfying", "failing"), MATCHES)
def test_which_values_satisfy_a_predicate(predicate, satisfying, failing):
    subscription = on_x(parse_subscription, predicate)
    matched = [value for value in satisfying + failing if subscription.matches({"class": "c", "x": value})]
    assert matched == satisfying
    assert not subscription.matches({"class": "c"})
