"""Covering: what a neighbour is told serves everything it must be served with, after any changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.routing.forwarding import Changes, Covering, Forwarding

Range = tuple[int, int]
ranges = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (min(pair), max(pair)))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), ranges),
        st.tuples(st.just("remove"), st.sets(st.integers(0, 9), min_size=1, max_size=4), st.none()),
    ),
    max_size=25,
)


def covers(a: Range, b: Range) -> bool:
    return a[0] <= b[0] and b[1] <= a[1]


class Store:
    """Ranges in place of subscriptions: covering is inclusion."""

    def __init__(self, mode: Covering) -> None:
        self.all: dict[str, Range] = {}
        self.forwarding: Forwarding[Range] = Forwarding(
            mode,
            lambda body: [i for i, other in self.all.items() if covers(other, body)],
            lambda body: [i for i, other in self.all.items() if covers(body, other)],
        )

    def play(self, step) -> Changes[Range]:
        changes: Changes[Range] = Changes()
        word, subject, body = step
        if word == "add" and f"{subject}" not in self.all:
            self.all[f"{subject}"] = body
            self.forwarding.add(f"{subject}", body, changes)
        elif word == "remove":
            ids = [f"{n}" for n in sorted(subject) if f"{n}" in self.all]
            for id_ in ids:
                del self.all[id_]
            self.forwarding.remove(ids, changes)
        return changes


@given(st.sampled_from(Covering), steps)
def test_the_neighbour_always_knows_something_that_covers_each_wanted_one(mode, program):
    store, known = Store(mode), {}
    for step in program:
        before = dict(known)
        changes = store.play(step)
        for id_, body in changes.tell.items():
            assert id_ not in known
            known[id_] = body
        assert all(id_ in known for id_ in changes.withdraw)
        for id_ in changes.withdraw:
            del known[id_]
        assert known.keys() == store.forwarding.told.keys()
        assert store.forwarding.wanted.keys() == store.all.keys()
        for body in store.all.values():
            assert any(covers(other, body) for other in known.values())
        if mode is Covering.OFF:
            assert known.keys() == store.all.keys()
        still_wanted = {i: b for i, b in before.items() if i in store.all}
        for body in still_wanted.values():  # between telling and withdrawing nothing is ever uncovered
            assert any(covers(other, body) for other in {**before, **changes.tell}.values())


@given(steps)
def test_active_covering_tells_nothing_that_something_told_covers(program):
    store = Store(Covering.ACTIVE)
    for step in program:
        store.play(step)
    told = {id_: store.all[id_] for id_ in store.forwarding.told}
    for id_, body in told.items():
        assert not any(covers(other, body) for i, other in told.items() if i != id_)


def test_withdrawing_the_cover_tells_what_it_covered_first():
    store = Store(Covering.ACTIVE)
    store.play(("add", 1, (0, 9)))
    assert not store.play(("add", 2, (2, 5))).tell
    changes = store.play(("remove", {1}, None))
    assert (list(changes.tell), list(changes.withdraw)) == (["2"], ["1"])
