"""A thousand random executions under faults keep every promise of the network."""

import pytest

from broker_runtime.sim.execution import execute

CHUNK = 50


@pytest.mark.parametrize("start", range(0, 1000, CHUNK))
def test_seeds(start: int) -> None:
    problems = {seed: execute(seed).problems for seed in range(start, start + CHUNK)}
    failed = {seed: found[0] for seed, found in problems.items() if found}
    commands = [f"python -m broker_runtime.sim replay {seed} --trace" for seed in failed]
    assert not failed, f"{failed}\n" + "\n".join(commands)
