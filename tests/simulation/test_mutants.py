"""The checkers have teeth: every planted bug is found within a few seeds.

The seed that found each when this was written is tried first, so this is quick; `make mutants` prints anew
which seed and which checker find which bug.
"""

import pytest

from broker_runtime.sim.execution import execute
from broker_runtime.sim.hunting import hunt
from broker_runtime.sim.mutants import MUTANTS, Planting, lost_hops_forget_the_covered
from broker_runtime.sim.options import drawn
from broker_runtime.sim.shrinking import overridden, shrink, written

SEEDS_MAX = 400
FOUND_BY = {
    "unsubscribing_forgets_the_covered": 2,
    "withdrawing_before_telling": 763,
    "repeated_frames_accepted": 0,
    "missing_frames_overlooked": 0,
    "resuming_sends_nothing_again": 0,
    "resuming_sends_one_too_many": 0,
    "received_is_called_taken": 2,
    "late_advertisements_pull_nothing": 0,
    "unadvertising_releases_nothing": 1,
    "publications_go_back": 0,
    "covering_inverted": 0,
    "covering_is_overlap": 0,
    "held_input_overtaken": 2,
    "lost_hops_keep_their_subscriptions": 0,
    "lost_hops_forget_the_covered": 5,
    "confirmed_too_early": 0,
    "blocked_sources_stay_blocked": 4,
    "full_queues_block_nobody": 12,
    "windows_ignored": 1,
    "cycles_admitted": 12,
    "two_links_at_once_close_a_cycle": 23,
    "the_newest_dropped": 167,
    "drops_not_told": 11,
    "anything_may_be_published": 0,
    "refusals_overtaken": 1,
    "held_refusals_overlooked": 1,
    "acknowledged_over_a_gap": 126,
    "nothing_issued_again": 1,
    "peers_that_leave_are_not_dialled": 13,
    "tables_keep_lost_links": 11,
}


def test_every_mutant_is_hunted() -> None:
    assert list(FOUND_BY) == [mutant.__name__ for mutant in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_found(mutant: Planting) -> None:
    assert hunt(mutant, (FOUND_BY[mutant.__name__], *range(SEEDS_MAX))) is not None


def test_the_same_seeds_find_nothing_in_the_core_itself() -> None:
    for seed in sorted(set(FOUND_BY.values())):
        assert execute(seed).problems == []


def test_a_failing_seed_can_be_shrunk_and_still_fails() -> None:
    found = hunt(lost_hops_forget_the_covered, range(SEEDS_MAX))
    assert found is not None
    seed, _ = found
    with lost_hops_forget_the_covered():
        overrides = shrink(seed)
        assert overrides
        assert execute(seed, overridden(drawn(seed), written(overrides))).problems
