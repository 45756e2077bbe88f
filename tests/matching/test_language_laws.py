"""What the relations of the language promise to routing, checked against matching itself."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.language.predicates import ORDERED, CustomOperator, Op, Predicate, predicate
from broker_runtime.language.values import Type, Value
from tests.matching.messages import advertisements, contents, subscriptions

MANY = settings(max_examples=400)


@MANY
@given(a=subscriptions, b=subscriptions, content=contents())
def test_what_matches_the_covered_matches_the_covering(
    a: Subscription, b: Subscription, content: Content
) -> None:
    if a.covers(b) and b.matches(content):
        assert a.matches(content)


@MANY
@given(a=subscriptions, b=subscriptions, content=contents())
def test_what_one_publication_matches_overlaps(a: Subscription, b: Subscription, content: Content) -> None:
    if a.matches(content) and b.matches(content):
        assert a.overlaps(b)
        assert b.overlaps(a)


@MANY
@given(a=advertisements, s=subscriptions, content=contents())
def test_what_is_induced_and_matches_overlaps(a: Advertisement, s: Subscription, content: Content) -> None:
    if a.induces(content) and s.matches(content):
        assert a.overlaps(s)


@MANY
@given(a=advertisements, b=advertisements, content=contents())
def test_what_the_covered_induces_the_covering_induces(
    a: Advertisement, b: Advertisement, content: Content
) -> None:
    if a.covers(b) and b.induces(content):
        assert a.induces(content)


def test_an_exclusion_does_not_cover_a_registered_operator_that_lets_nan_pass() -> None:
    anything = CustomOperator("other-than-five", lambda value, _: value != 5)
    neq = Subscription([predicate("class", Op.EQ, "C"), predicate("x", Op.NEQ, 5)])
    odd = [predicate("x", Op.PRESENT, Type.FLOAT), predicate("x", anything, 5)]
    loose = Subscription([predicate("class", Op.EQ, "C"), *odd])
    assert loose.matches({"class": "C", "x": float("nan")})
    assert not neq.covers(loose)


@MANY
@given(s=subscriptions)
def test_covering_is_reflexive(s: Subscription) -> None:
    assert s.covers(s)


# In a domain that samples every cut, gap and end of these operands, the relations are exact.
BOUNDS = (1, 2, 3)
SAMPLES: tuple[Value, ...] = (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)
WORDS = ("a", "ab", "b")
WORD_SAMPLES: tuple[Value, ...] = ("", "A", "a", "a\0", "aa", "ab", "ab\0", "abz", "ac", "b", "ba", "c")

numeric = st.one_of(
    st.builds(
        lambda op, n: predicate("x", op, n),
        st.sampled_from((*sorted(ORDERED, key=str), Op.EQ)),
        st.sampled_from(BOUNDS),
    ),
    st.just(predicate("x", Op.PRESENT, Type.FLOAT)),
)
textual = st.builds(
    lambda op, word: predicate("x", op, word),
    st.sampled_from((*sorted(ORDERED, key=str), Op.EQ, Op.PREFIX)),
    st.sampled_from(WORDS),
)


def subscription(predicates: list[Predicate]) -> Subscription:
    return Subscription([predicate("class", Op.EQ, "C"), *predicates])


def exact(a: Subscription, b: Subscription, samples: tuple[Value, ...]) -> None:
    both = [(a.matches(content), b.matches(content)) for content in ({"class": "C", "x": v} for v in samples)]
    assert a.covers(b) == all(mine or not theirs for mine, theirs in both)
    assert a.overlaps(b) == any(mine and theirs for mine, theirs in both)


conjunctions_of_numbers = st.lists(numeric, min_size=1, max_size=2).map(subscription)
conjunctions_of_words = st.lists(textual, min_size=1, max_size=2).map(subscription)


@MANY
@given(a=conjunctions_of_numbers, b=conjunctions_of_numbers)
def test_numbers_are_exact(a: Subscription, b: Subscription) -> None:
    exact(a, b, (*SAMPLES, -(10**9), 10**9, float("nan")))


@MANY
@given(a=conjunctions_of_words, b=conjunctions_of_words)
def test_order_equality_and_prefixes_of_words_are_exact(a: Subscription, b: Subscription) -> None:
    exact(a, b, WORD_SAMPLES)


def test_equalities_and_lists_are_exact() -> None:
    lists = [subset for n in (1, 2, 3) for subset in product("abc", repeat=n)]
    every = [subscription([predicate("x", Op.IN, tuple(subset))]) for subset in lists]
    every += [subscription([predicate("x", Op.EQ, word)]) for word in "abcd"]
    for a, b in product(every, repeat=2):
        exact(a, b, ("a", "b", "c", "d", "e"))
