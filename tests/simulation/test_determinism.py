"""One seed is one execution: on every run, and whatever order this process's hashes give."""

import hashlib
import os
import subprocess
import sys

import pytest

from broker_runtime.sim.execution import execute
from broker_runtime.sim.options import drawn

SEEDS = (5, 26, 40, 118)
DIGEST = """
import hashlib, sys
from broker_runtime.sim.execution import execute
for seed in sys.argv[1:]:
    digest = hashlib.sha256()
    execute(int(seed), trace=lambda line: digest.update(line.encode()))
    print(digest.hexdigest())
"""


def digest_under(hash_seed: str) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", DIGEST, *map(str, SEEDS)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def test_the_whole_trace_is_the_same_under_any_hash_seed() -> None:
    first = digest_under("1")
    assert len(set(first)) == len(SEEDS)
    assert digest_under("2") == first
    assert digest_under("random") == first


@pytest.mark.parametrize("seed", [3, 30])
def test_a_second_run_in_one_process_is_the_same(seed: int) -> None:
    def digest() -> str:
        seen = hashlib.sha256()
        execute(seed, trace=lambda line: seen.update(line.encode()))
        return seen.hexdigest()

    assert digest() == digest()


def test_watching_does_not_change_what_happens() -> None:
    lines: list[str] = []
    assert execute(7, trace=lines.append) == execute(7)
    assert lines


def test_seeds_draw_different_worlds() -> None:
    assert len({drawn(seed) for seed in range(50)}) == 50
