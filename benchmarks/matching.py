"""Measures the matching engines on the papers' workload and on a broker's daily bread; never judges.

Subscriptions have 3–6 of 20 attributes, values from 1 to 100 and one of five operators each; publications
have 3–6, 6–12 or all 20 attributes. Attributes and values are drawn uniformly, or Zipf: the i-th with a
weight of 1/i. All times are CPU times of this process, with the garbage collector off. Every table size runs
in a process of its own, so that memory can be told from the growth of the resident set.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.language.predicates import Op, Predicate, Test, compiled, predicate
from broker_runtime.language.values import Value
from broker_runtime.matching.bitrows import BitRowEngine
from broker_runtime.matching.counting import CountingEngine
from broker_runtime.matching.scan import ScanEngine

SEED = 4711
ATTRIBUTES = [f"a{i}" for i in range(1, 21)]
VALUES = range(1, 101)
OPERATORS = (Op.EQ, Op.LT, Op.GT, Op.LE, Op.GE)
PUBLICATIONS = {"3-6": (3, 6), "6-12": (6, 12), "20": (20, 20)}
CLASS = predicate("class", Op.EQ, "STOCK")


class Figure(NamedTuple):
    case: str
    what: str
    value: float
    unit: str


class Workload:
    """A seeded source of subscriptions and publications. Equal predicates are one object."""

    def __init__(self, zipf: bool) -> None:
        self._random = random.Random(SEED)
        weights = [1 / i if zipf else 1.0 for i in range(1, len(VALUES) + 1)]
        self._value_weights = list(itertools.accumulate(weights))
        self._attribute_weights = weights[: len(ATTRIBUTES)]
        self._predicates: dict[tuple[str, Op, int], Predicate] = {}

    def _attributes(self, count: int) -> list[str]:
        # Without replacement, each draw in proportion to the weights (Efraimidis and Spirakis).
        draw = self._random.random
        keyed = zip([draw() ** (1 / w) for w in self._attribute_weights], ATTRIBUTES, strict=True)
        return [name for _, name in sorted(keyed, reverse=True)[:count]]

    def _value(self) -> int:
        return self._random.choices(VALUES, cum_weights=self._value_weights)[0]

    def _predicate(self, attribute: str) -> Predicate:
        key = (attribute, self._random.choice(OPERATORS), self._value())
        known = self._predicates.get(key)
        if known is None:
            known = self._predicates[key] = predicate(*key)
        return known

    def subscription(self) -> Subscription:
        names = self._attributes(self._random.randint(3, 6))
        return Subscription([CLASS, *map(self._predicate, names)])

    def publication(self, low: int, high: int) -> Content:
        names = self._attributes(self._random.randint(low, high))
        return {"class": "STOCK", **{name: self._value() for name in names}}


class Samples:
    """CPU times of single calls, in microseconds, and how much they gave back."""

    def __init__(self, ask: Callable[[Any], list[Any]], questions: Iterable[Any]) -> None:
        self._times: list[float] = []
        found = 0
        clock = time.process_time_ns
        for question in questions:
            start = clock()
            answer = ask(question)
            self._times.append((clock() - start) / 1000)
            found += len(answer)
        self._times.sort()
        self.found = found / len(self._times)
        self.mean = sum(self._times) / len(self._times)

    def quantile(self, share: float) -> float:
        return self._times[min(len(self._times) - 1, int(share * len(self._times)))]

    def figures(self, case: str, what: str) -> list[Figure]:
        return [
            Figure(case, f"{what}, mean", self.mean, "µs"),
            Figure(case, f"{what}, p50", self.quantile(0.50), "µs"),
            Figure(case, f"{what}, p99", self.quantile(0.99), "µs"),
            Figure(case, f"{what}, found", self.found, "keys"),
        ]


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def measure_table(arguments: tuple[int, bool, bool]) -> list[Figure]:
    """One table size and distribution, in a fresh process."""
    count, zipf, quick = arguments
    case = f"{count:,} {'zipf' if zipf else 'uniform'}"
    gc.disable()
    workload = Workload(zipf)
    empty = resident_megabytes()
    subscriptions = [workload.subscription() for _ in range(count)]
    held = resident_megabytes()
    engine: BitRowEngine[int] = BitRowEngine()
    longest, total = load(engine, subscriptions)
    full = resident_megabytes()
    figures = [
        Figure(case, "memory, engine", full - held, "MB"),
        Figure(case, "memory, with subscriptions", full - empty, "MB"),
        Figure(case, "load", count / total, "adds/s"),
        Figure(case, "load, longest add", longest * 1000, "ms"),
    ]
    figures += matching_figures(case, engine, workload, quick)
    figures += relation_figures(case, engine, workload, quick)
    figures += online_figures(case, engine, workload, quick)
    figures += baseline_figures(case, engine, subscriptions, workload, quick)
    return figures


def load(engine: BitRowEngine[int], subscriptions: list[Subscription]) -> tuple[float, float]:
    """The longest addition and all of them together, in seconds."""
    longest = 0
    total = 0
    clock = time.process_time_ns
    for key, subscription in enumerate(subscriptions):
        start = clock()
        engine.add(key, subscription)
        took = clock() - start
        total += took
        if took > longest:
            longest = took
    return longest / 1e9, total / 1e9


def matching_figures(case: str, engine: Any, workload: Workload, quick: bool) -> list[Figure]:
    figures = []
    for name, (low, high) in PUBLICATIONS.items():
        publications = [workload.publication(low, high) for _ in range(200 if quick else 1000)]
        for each in publications[:100]:
            engine.match(each)
        figures += Samples(engine.match, publications).figures(case, f"match {name}")
    return figures


def relation_figures(case: str, engine: Any, workload: Workload, quick: bool) -> list[Figure]:
    asked = [workload.subscription() for _ in range(50 if quick else 300)]
    promised = [Advertisement(each.predicates) for each in asked]
    engine.covering(asked[0])
    return [
        *Samples(engine.covering, asked).figures(case, "covering"),
        *Samples(engine.covered, asked).figures(case, "covered"),
        *Samples(engine.overlapping_advertisement, promised).figures(case, "advertised"),
        *Samples(engine.overlapping, asked[:50]).figures(case, "overlapping"),
    ]


def online_figures(case: str, engine: Any, workload: Workload, quick: bool) -> list[Figure]:
    """Additions, then removals, with a publication matched after every tenth."""
    count = min(2_000 if quick else 20_000, len(engine) // 2)
    fresh = [workload.subscription() for _ in range(count)]
    publications = itertools.cycle([workload.publication(3, 6) for _ in range(100)])
    keys = [-1 - n for n in range(count)]
    clock = time.process_time_ns
    figures = []
    steps: dict[str, Callable[[int], None]] = {
        "add": lambda n: engine.add(keys[n], fresh[n]),
        "delete": engine.remove,
    }
    for what, step in steps.items():
        total = longest = 0
        for n in range(count):
            start = clock()
            step(n)
            took = clock() - start
            total += took
            longest = max(longest, took)
            if n % 10 == 0:
                engine.match(next(publications))
        figures += [
            Figure(case, f"online {what}", count / total * 1e9, "per s"),
            Figure(case, f"online {what}, longest", longest / 1e6, "ms"),
        ]
    for n in range(count):
        engine.remove(keys[n])
    return figures


class CompactScan:
    """A scan that shares equal tests and skips every call it can: the oracle's cost is mostly cache misses.

    Ratios are to be read against this one; `ScanEngine` keeps a closure for each predicate it stores.
    """

    def __init__(self) -> None:
        self._tests: dict[Predicate, Test] = {}
        self._stored: list[tuple[int, tuple[tuple[str, Test], ...]]] = []

    def add(self, key: int, subscription: Subscription) -> None:
        for each in subscription.predicates:
            if each not in self._tests:
                self._tests[each] = compiled(each)
        self._stored.append((key, tuple((p.attribute, self._tests[p]) for p in subscription.predicates)))

    def match(self, content: Content) -> list[int]:
        found = []
        get = content.get
        for key, tests in self._stored:
            for attribute, test in tests:
                value = get(attribute)
                if value is None or not test(value):
                    break
            else:
                found.append(key)
        return found


def baseline_figures(
    case: str, engine: Any, subscriptions: list[Subscription], workload: Workload, quick: bool
) -> list[Figure]:
    """How many times faster than counting and than two scans, on the same publications."""
    samples = 3 if len(subscriptions) > 500_000 else 10
    for key in [key for key in range(len(subscriptions)) if key not in engine]:
        engine.add(key, subscriptions[key])
    figures = []
    baselines: dict[str, Callable[[], Any]] = {
        "counting": CountingEngine[int],
        "compact scan": CompactScan,
        "oracle": ScanEngine[int],
    }
    for name, make in baselines.items():
        baseline = make()
        for key, subscription in enumerate(subscriptions):
            baseline.add(key, subscription)
        baseline.match(workload.publication(20, 20))
        for what, (low, high) in PUBLICATIONS.items():
            publications = [workload.publication(low, high) for _ in range(100)]
            theirs = Samples(baseline.match, publications[:samples])
            assert Samples(engine.match, publications[:samples]).found == theirs.found
            ours = Samples(engine.match, publications)
            figures += [
                Figure(case, f"match {what}, {name}", theirs.mean, "µs"),
                Figure(case, f"match {what}, {name} ÷ ours", theirs.mean / ours.mean, "×"),
            ]
    return figures


def measure_small(quick: bool) -> list[Figure]:
    """The tables of a broker's hot path: few subscriptions, or many that name a symbol."""
    gc.disable()
    figures = []
    source = random.Random(SEED)
    publication: dict[str, Value] = {
        "class": "STOCK",
        "symbol": "IBM",
        "price": 51.5,
        "volume": 1000,
        "open": 50,
    }
    for count in (1, 5, 20, 50):
        for what, symbol in (("all match", "IBM"), ("none match", "SAP")):
            engine = stock_engine([(symbol, source.randint(1, 50)) for _ in range(count)])
            figures.append(Figure("small", f"{count} stored, {what}", repeated(engine, [publication]), "µs"))
    symbols = [f"S{n}" for n in range(500)]
    engine = stock_engine([(source.choice(symbols), source.random() * 100) for _ in range(10_000)])
    publications: list[Content] = [
        {**publication, "symbol": source.choice(symbols), "price": source.random() * 100} for _ in range(500)
    ]
    found = sum(len(engine.match(each)) for each in publications) / len(publications)
    return [
        *figures,
        Figure("small", "10,000 × 3 predicates", repeated(engine, publications), "µs"),
        Figure("small", "10,000 × 3 predicates, found", found, "keys"),
    ]


def stock_engine(asked: list[tuple[str, float]]) -> BitRowEngine[int]:
    engine: BitRowEngine[int] = BitRowEngine()
    for key, (symbol, price) in enumerate(asked):
        wanted = [CLASS, predicate("symbol", Op.EQ, symbol), predicate("price", Op.GT, price)]
        engine.add(key, Subscription(wanted))
    return engine


def repeated(engine: BitRowEngine[int], publications: list[Any], calls: int = 5_000) -> float:
    """Microseconds per match, the best of five rounds: short calls are measured many at a time."""
    best = float("inf")
    questions = [publications[n % len(publications)] for n in range(calls)]
    match = engine.match
    for _ in range(5):
        start = time.process_time_ns()
        for each in questions:
            match(each)
        best = min(best, (time.process_time_ns() - start) / calls / 1000)
    return best


def show(figures: list[Figure]) -> None:
    width = max(len(figure.what) for figure in figures)
    for case, group in itertools.groupby(figures, key=lambda figure: figure.case):
        print(f"\n{case}")
        for figure in group:
            digits = 2 if figure.value < 100 else 0
            print(f"  {figure.what:<{width}}  {figure.value:>14,.{digits}f} {figure.unit}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks matching", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 subscriptions and small samples")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of subscriptions")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    options = parser.parse_args(argv)
    sizes = options.sizes or ([10_000] if options.quick else [10_000, 200_000, 1_000_000])
    tables = [(size, zipf, options.quick) for size in sizes for zipf in (False, True)]
    figures: list[Figure] = []
    # One task per process: what an earlier table left in memory must not count for a later one.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for part in itertools.chain(
            pool.imap(measure_small, [options.quick], chunksize=1),
            pool.imap(measure_table, tables, chunksize=1),
        ):
            show(part)
            sys.stdout.flush()
            figures += part
    if options.json:
        text = json.dumps([figure._asdict() for figure in figures], indent=1, ensure_ascii=False)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
