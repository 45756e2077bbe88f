"""Decides what a synthetic workload says: some of many attributes, values by a distribution, from a seed.

The default is the papers' workload (000, section 6): 3 to 6 of 20 attributes, values 1 to 100.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Op, predicate
from broker_runtime.language.values import Type, Value
from broker_runtime.seam import RandomSource

OPERATORS: Final = {"=": Op.EQ, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
VALUES_MAX: Final = 1_000_000
ATTRIBUTES_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What to generate. `skew` is the exponent of a Zipf distribution; 0 is uniform."""

    class_: str = "SYNTHETIC"
    attributes: int = 20
    per_message: tuple[int, int] = (3, 6)
    values: tuple[int, int] = (1, 100)
    skew: float = 0.0
    operators: tuple[str, ...] = ("=", "<", "<=", ">", ">=")

    def __post_init__(self) -> None:
        least, most = self.per_message
        if not 1 <= self.attributes <= ATTRIBUTES_MAX:
            raise ValueError(f"there are 1 to {ATTRIBUTES_MAX} attributes")
        if not 1 <= least <= most <= self.attributes:
            raise ValueError(f"a message has 1 to {self.attributes} attributes, the fewer given first")
        low, high = self.values
        if not low <= high < low + VALUES_MAX:
            raise ValueError(f"values go from low to high, at most {VALUES_MAX} of them")
        if not 0 <= self.skew <= 10:
            raise ValueError("the exponent of Zipf's distribution is 0 to 10")
        if not self.operators or not set(self.operators) <= set(OPERATORS):
            raise ValueError(f"operators are some of {' '.join(OPERATORS)}")


class Synthetic:
    """Messages of one specification, from one source of randomness."""

    def __init__(self, spec: Spec, random: RandomSource) -> None:
        self.spec = spec
        self._random = random
        self._names = [f"a{number:02d}" for number in range(spec.attributes)]
        low, high = spec.values
        weights = (rank**-spec.skew for rank in range(1, high - low + 2))
        self._cumulated = list(accumulate(weights))

    def publication(self) -> dict[str, Value]:
        return {CLASS: self.spec.class_, **{name: self._value() for name in self._chosen()}}

    def subscription(self) -> Subscription:
        operators = self.spec.operators
        wanted = [predicate(CLASS, Op.EQ, self.spec.class_)]
        for name in self._chosen():
            operator = operators[self._below(len(operators))]
            wanted.append(predicate(name, OPERATORS[operator], self._value()))
        return Subscription(wanted)

    def advertisement(self) -> Advertisement:
        """Allows every publication of this workload."""
        promised = [predicate(CLASS, Op.EQ, self.spec.class_)]
        promised += [predicate(name, Op.PRESENT, Type.INTEGER) for name in self._names]
        return Advertisement(promised)

    def payload(self, length: int) -> bytes:
        return self._random.randbytes(length) if length else b""

    def _chosen(self) -> list[str]:
        """So many different attributes, in their own order."""
        least, most = self.spec.per_message
        count = least + self._below(most - least + 1)
        pool = list(range(len(self._names)))
        for i in range(count):
            j = i + self._below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return [self._names[i] for i in sorted(pool[:count])]

    def _value(self) -> int:
        low, high = self.spec.values
        if not self.spec.skew:
            return low + self._below(high - low + 1)
        return low + bisect_left(self._cumulated, self._random.random() * self._cumulated[-1])

    def _below(self, limit: int) -> int:
        return int(self._random.random() * limit)
