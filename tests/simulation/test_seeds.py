"""A thousand random executions under faults keep every promise of the network."""

import pytest

from broker_runtime.sim.execution import execute

CHUNK = 50


@pytest.mark.parametrize("start", range(0, 1000, CHUNK))
def test_seeds(start: int) -> None:
    failed = {seed: problems[0] for seed in range(start, start + CHUNK) if (problems := execute(seed).problems)}
    commands = [f"python -m broker_runtime.sim replay {seed} --trace" for seed in failed]
    assert not failed, f"{failed}\n" + "\n".join(commands)
