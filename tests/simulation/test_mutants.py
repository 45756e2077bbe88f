"""The checkers have teeth: each planted bug is found by the seeds that are known to find it.

When the simulator's programs change, `make mutants` prints the seeds to write here.
"""

import pytest

from broker_runtime.sim.execution import execute
from broker_runtime.sim.mutants import MUTANTS, Planting, hunt

FOUND_BY = {
    "unsubscribing_forgets_the_covered": (5, "nothing missing"),
    "withdrawing_before_telling": (13, "nothing missing"),
    "repeated_frames_accepted": (0, "every call answered"),
    "missing_frames_overlooked": (11, "refused as promised"),
    "resuming_sends_nothing_again": (0, "convergence"),
    "resuming_sends_one_too_many": (5, "handle raised"),
    "received_is_called_taken": (1, "every call answered"),
    "late_advertisements_pull_nothing": (0, "wanted is told"),
    "unadvertising_releases_nothing": (0, "wanted is told"),
    "publications_go_back": (1, "convergence"),
    "covering_inverted": (0, "wanted is told"),
    "covering_is_overlap": (0, "nothing missing"),
    "held_input_overtaken": (1, "in order"),
    "lost_hops_keep_their_subscriptions": (0, "convergence"),
    "lost_hops_forget_the_covered": (13, "nothing missing"),
    "confirmed_too_early": (0, "confirmed when gone"),
    "blocked_sources_stay_blocked": (1, "nothing missing"),
    "full_queues_block_nobody": (13, "bounded queues"),
    "windows_ignored": (1, "bounded queues"),
    "cycles_admitted": (12, "convergence"),
    "two_links_at_once_close_a_cycle": (23, "convergence"),
    "the_newest_dropped": (11, "nothing missing"),
    "drops_not_told": (1, "nothing missing"),
    "anything_may_be_published": (0, "refused as promised"),
    "refusals_overtaken": (2, "every call answered"),
    "acknowledged_before_the_gap": (1, "every call answered"),
    "nothing_issued_again": (2, "nothing missing"),
    "peers_that_leave_are_not_dialled": (45, "convergence"),
    "tables_keep_lost_links": (1, "back to baseline"),
}


def test_every_mutant_is_hunted() -> None:
    assert list(FOUND_BY) == [mutant.__name__ for mutant in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_found(mutant: Planting) -> None:
    seed, checker = FOUND_BY[mutant.__name__]
    found = hunt(mutant, range(seed, seed + 1))
    assert found is not None, f"seed {seed} does not notice it any more"
    assert found[1].startswith(checker)


def test_the_same_seeds_find_nothing_in_the_core_itself() -> None:
    for seed in sorted({seed for seed, _ in FOUND_BY.values()}):
        assert execute(seed).problems == []
