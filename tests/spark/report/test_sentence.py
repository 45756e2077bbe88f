"""The run in one sentence: honest and readable, whatever the summary says."""

from __future__ import annotations

import pytest

from panda_spark.report import sentence
from panda_spark.report.sentences import fault_sentence, named
from panda_spark.report.words import ident, seconds, share, short
from tests.spark.report import runs

GOOD: dict[str, object] = {
    "published": 60,
    "expected": 60,
    "delivered": 60,
    "latency_p50_s": 0.028,
    "latency_p99_s": 1.4,
}
RUN = {"brokers": 3, "clients": 2}


def test_a_good_run_is_told_with_its_size_and_its_latency() -> None:
    assert sentence(GOOD, run=RUN, subscribers=1) == (
        "3 brokers carried 60 publications to 1 subscriber: all 60 deliveries arrived, once and in order, "
        "half of them within 28 ms, 99 % within 1.4 s."
    )


def test_a_fault_is_named_with_the_silence_it_made() -> None:
    fault = {"fault": "cut", "a": "Bob", "b": "Carol", "gap_s": 1.26}
    told = sentence(GOOD, run=RUN, faults=[fault])
    assert told.endswith("; one fault (cut Bob–Carol) kept somebody waiting for 1.26 s.")


def test_of_faults_that_are_not_all_at_hand_none_is_called_the_worst() -> None:
    told = sentence({**GOOD, "faults": 300}, run=RUN, faults=[{"fault": "cut", "gap_s": 1.0}] * 200)
    assert told.endswith("; 300 faults.")


def test_losses_late_and_double_deliveries_are_counted_and_never_rounded_away() -> None:
    told = sentence({**GOOD, "delivered": 50, "late": 4, "lost": 3, "twice": 2, "out_of_order": 1}, run=RUN)
    assert (
        "3 of 60 deliveries got lost, the other 57 arrived, 4 late, 2 more than once and 1 out of order"
        in told
    )


@pytest.mark.parametrize(
    ("summary", "run", "words"),
    [
        ({}, {}, "Nothing is known of this run"),
        ({"published": 0}, {"brokers": 1, "clients": 0}, "nothing was published, for there were no clients"),
        ({"published": 0, "duration_s": 9.0}, {}, "The network ran for 9 s, and nothing was published."),
        ({"published": 7}, RUN, "3 brokers took 7 publications, which nobody asked for."),
        ({"published": 7, "unexpected": 2}, RUN, "which nobody asked for, yet 2 arrived"),
        ({"published": 7, "expected": 7, "lost": 7}, RUN, "none of 7 deliveries arrived."),
        ({"published": 7, "expected": 7, "unknown": 7}, RUN, "is not known; 7 cannot be told"),
        ({"published": 1, "expected": 1, "delivered": 1}, RUN, "the one delivery arrived, once"),
        ({**GOOD, "missing": 1}, RUN, "1 log did not come home"),
        ({**GOOD, "quarantined": 2}, RUN, "2 lines could not be read"),
        ({**GOOD, "failed": 1}, RUN, "1 process ended unexpectedly"),
        ({**GOOD, "unsettled": 5}, RUN, "5 can be judged either way"),
        ({**GOOD, "unexpected": 5}, RUN, "and 5 came that nobody asked for"),
        ({**GOOD, "faults": 2}, RUN, "there were 2 faults"),
        ({"published": "many", "delivered": float("nan")}, RUN, "3 brokers ran, and nothing was published"),
    ],
)  # fmt: skip
def test_every_case_has_its_words(summary: dict[str, object], run: dict[str, object], words: str) -> None:
    told = sentence(summary, run=run)
    assert words in told
    assert told.endswith(".")
    assert "None" not in told
    assert "nan" not in told


def test_a_fault_says_what_it_did() -> None:
    fault = runs.rich().tables["faults"][2]
    assert named(fault) == "kill B4"
    assert fault_sentence(fault).startswith(
        "190 publications meanwhile: 37 lost and 12 late; longest silence"
    )
    assert fault_sentence({}) == "nothing was published meanwhile."


def test_numbers_read_well_and_never_claim_more_than_they_know() -> None:
    assert [seconds(each) for each in (0, 0.000012, 0.0284, 0.9999, 59.95, 119, 7200, -0.003, None)] == [
        "0 s", "12 µs", "28.4 ms", "1 s", "60 s", "119 s", "2 h", "−3 ms", "–",
    ]  # fmt: skip
    assert [share(each) for each in (1, 0.99999, 0.5, 0.00001, 0)] == [
        "100 %",
        ">99.9 %",
        "50 %",
        "<0.1 %",
        "0 %",
    ]


def test_long_texts_are_cut_and_long_ids_keep_their_end() -> None:
    assert short("a\x00b\n\tc" + "x" * 1000, 10) == "a b cxxxx…"
    assert ident("broker-" + "0" * 500 + "-17", 20).endswith("000-17")
    assert len(ident("x" * 10_000, 20)) == 20
