"""Messages of every shape that the language can write, for the laws."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from broker_runtime.language import Advertisement, Op, Predicate, Subscription, Type, Variable, predicate

AWKWARD = [
    "", " ", "'", '"', "''", "\\", "\\'", "\\n", "\n", "\r\n", "\0", "]", "[", "],[", "a, b", ";", "&&",
    "(", ")",
    "‘", "’", "“x”", "true", "FALSE", "nan", "-inf", "12", "1e5", "$X", "$X + 1", "@STRING", "*", "NOW",
    "now-1h",
    "MY_LOC", "MY_LOC + 10", "isPresent", "2008-08-12", "12-Apr-96", "31-Feb-2008", "2008-08-12T10:20:30Z",
    "2008-08-12T23:59:60Z", "\u2028", "\u200b", "\ufeff", "😀", "é", "e\u0301", "\U0010ffff", "\x7f\x85",
]  # fmt: skip

texts = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.sampled_from(["price", "x.y-z", "größe", "_t"]) | texts.filter(bool)
integers = st.integers() | st.integers(-(10**80), 10**80)
floats = st.floats(allow_nan=False)
dates = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC, fold=0)
)
ordered_values = st.one_of(texts, integers, floats, dates)
comparable_values = ordered_values | st.booleans()
values = comparable_values | st.just(float("nan"))

contents = st.builds(
    lambda cls, others: {"class": cls, **others}, values, st.dictionaries(names, values, max_size=6)
)

shifts = (
    st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.timedeltas(timedelta(days=-999), timedelta(days=999)).filter(bool)
)
variables = st.builds(Variable, st.sampled_from(["X", "L", "t_1", "Ä"]), shifts)

_members = st.one_of(
    st.lists(each, min_size=1, max_size=5) for each in (texts, integers | floats, dates, st.booleans())
)

bound_predicates = st.one_of(
    st.builds(predicate, names, st.sampled_from([Op.EQ, Op.NEQ]), comparable_values),
    st.builds(predicate, names, st.sampled_from([Op.LT, Op.LE, Op.GT, Op.GE]), ordered_values),
    st.builds(predicate, names, st.sampled_from([Op.PREFIX, Op.POSTFIX, Op.CONTAINS]), texts),
    st.builds(predicate, names, st.just(Op.PRESENT), st.sampled_from(Type)),
    st.builds(predicate, names, st.just(Op.IN), _members),
)
joining_predicates = st.builds(
    predicate, names, st.sampled_from([Op.EQ, Op.NEQ, Op.LT, Op.LE, Op.GT, Op.GE]), variables
)


def _with_class(each: list[Predicate], name: str) -> list[Predicate]:
    return [*each, predicate("class", Op.EQ, name)]


advertisements = st.builds(_with_class, st.lists(bound_predicates, max_size=6), texts).map(Advertisement)
subscriptions = st.builds(
    _with_class, st.lists(bound_predicates | joining_predicates, max_size=6), texts
).map(Subscription)
