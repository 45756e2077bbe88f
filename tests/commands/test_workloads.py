"""Workloads come from their seed alone, keep their own rules, and their schedules do not drift."""

from collections import Counter
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language import parse_advertisement, parse_publication, print_publication
from broker_runtime.workloads.schedule import even, merged, poisson, until
from broker_runtime.workloads.stocks import advertisement_text, quotes
from broker_runtime.workloads.synthetic import Spec, Synthetic


@given(st.integers(), st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable()))
def test_quotes_are_consistent_and_as_advertised(seed: int, symbol: str) -> None:
    promised = parse_advertisement(advertisement_text(symbol))
    for quote in islice(quotes(symbol, Random(seed)), 50):
        assert promised.induces(quote)
        low, high = quote["low"], quote["high"]
        assert 0 < low <= min(quote["open"], quote["close"])  # type: ignore[operator, type-var]
        assert max(quote["open"], quote["close"]) <= high  # type: ignore[operator, type-var]
        assert quote["volume"] >= 0  # type: ignore[operator]
        assert parse_publication(print_publication(quote)) == quote


def test_a_seed_means_the_same_quotes_for_ever() -> None:
    first = next(quotes("YHOO", Random("0 YHOO")))
    assert first == next(quotes("YHOO", Random("0 YHOO")))
    assert first != next(quotes("YHOO", Random("1 YHOO")))
    days = [quote["date"] for quote in islice(quotes("YHOO", Random(0)), 100)]
    assert days == sorted(set(days))  # type: ignore[type-var]
    assert all(day.weekday() < 5 for day in days)  # type: ignore[union-attr]


specs = st.builds(
    lambda n, low, width, skew, part: Spec(
        attributes=n, per_message=(1 + (n - 1) // part, n), values=(low, low + width), skew=skew
    ),
    st.integers(1, 30),
    st.integers(-100, 100),
    st.integers(0, 200),
    st.sampled_from([0.0, 0.8, 1.0, 2.0]),
    st.integers(1, 4),
)


@given(specs, st.integers())
def test_synthetic_messages_keep_their_specification(spec: Spec, seed: int) -> None:
    source, again = Synthetic(spec, Random(seed)), Synthetic(spec, Random(seed))
    promised = source.advertisement()
    low, high = spec.values
    for _ in range(20):
        content = source.publication()
        assert content == again.publication()
        assert promised.induces(content)
        assert spec.per_message[0] <= len(content) - 1 <= spec.per_message[1]
        assert all(low <= value <= high for name, value in content.items() if name != "class")  # type: ignore[operator]
        subscription = source.subscription()
        assert subscription == again.subscription()
        assert promised.overlaps(subscription) or not subscription.satisfiable


def test_zipf_prefers_the_first_values_and_uniform_none() -> None:
    def counted(skew: float) -> Counter[object]:
        source = Synthetic(Spec(attributes=1, per_message=(1, 1), values=(1, 10), skew=skew), Random(1))
        return Counter(source.publication()["a00"] for _ in range(5000))

    uniform, skewed = counted(0.0), counted(1.0)
    assert max(uniform.values()) < 1.3 * min(uniform.values())
    assert [value for value, _ in skewed.most_common(3)] == [1, 2, 3]
    assert 0.3 < skewed[1] / 5000 < 0.38  # 1/H(10) = 0.341


@pytest.mark.parametrize(
    "wrong",
    [
        {"attributes": 0},
        {"per_message": (5, 3)},
        {"per_message": (3, 30)},
        {"values": (5, 1)},
        {"skew": -1.0},
        {"operators": ("~",)},
    ],
)
def test_a_specification_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Spec(**wrong)  # type: ignore[arg-type]


def test_even_times_do_not_drift() -> None:
    times = list(islice(even(3.0), 3_000_001))
    assert times[0] == 0.0
    assert times[3_000_000] == 1_000_000.0


def test_poisson_has_the_rate_asked_for() -> None:
    count = sum(1 for _ in until(poisson(100.0, Random(5)), 100.0))
    assert 9_600 < count < 10_400
    assert list(islice(poisson(1.0, Random(1)), 5)) == list(islice(poisson(1.0, Random(1)), 5))


def test_merged_schedules_keep_time_and_say_whose_turn_it_is() -> None:
    assert list(islice(merged([even(1.0), even(2.0)]), 6)) == [
        (0.0, 0),
        (0.0, 1),
        (0.5, 1),
        (1.0, 0),
        (1.0, 1),
        (1.5, 1),
    ]
