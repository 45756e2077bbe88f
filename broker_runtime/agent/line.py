"""Decides what is said to processes on their lines and what their answers mean: faults, heals, links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker_runtime.agent.effects import Freeze, Ledger, Moment, Say
from broker_runtime.agent.lives import LINKS_MAX, RUNNING, Fault, Life
from broker_runtime.agent.schedule import Item
from broker_runtime.agent.spec import PEER_LENGTH_MAX

ANSWER_WITHIN_S: Final = 5.0
REASON_LENGTH_MAX: Final = 300
# What a process may have written to the journal: a burst, and then so much a second.
LINES_BURST: Final = 2_000.0
LINES_PER_S: Final = 50.0


class Switchboard:
    """Speaks for the conductor to processes; steps are finished when their answers come."""

    def __init__(self, ledger: Ledger, finish: Callable[..., None]) -> None:
        self._ledger = ledger
        self._finish = finish

    def freeze(self, life: Life, *, frozen: bool) -> None:
        life.paused = frozen
        self._ledger.add(Freeze(life.process.id, frozen))

    def ask(self, life: Life, item: Item, now: Moment) -> None:
        """Send a fault or a heal; the step is done when the process has answered."""
        if not life.has_line and life.process.kind == "command":
            self._finish(item, now, f"{life.process.id} cannot be told: it is no process of the runtime")
            return
        life.asked[item.step.number] = (item, now.mono + ANSWER_WITHIN_S)
        if life.has_line:
            self._say(life, item)

    def back(self, life: Life) -> None:
        """There is a line again: what has waited for it is said now."""
        life.has_line = True
        for item, _ in life.asked.values():
            self._say(life, item)

    def _say(self, life: Life, item: Item) -> None:
        step = item.step
        if item.action == "heal":
            message: dict[str, Any] = {"heal": step.peer or "*", "number": step.number}
        else:
            message = {"fault": step.fault, "number": step.number, "peer": step.peer}
            message |= {"value": step.value} if step.value is not None else {}
            message |= {"for_s": step.for_s} if step.for_s is not None else {}
        self._ledger.add(Say(life.process.id, message))

    def said(self, life: Life, message: Mapping[str, Any], now: Moment) -> None:
        if message.get("say") == "fault":
            self._answered(life, message, now)
        elif message.get("say") == "link":
            self._link(life, message, now)

    def _answered(self, life: Life, message: Mapping[str, Any], now: Moment) -> None:
        number = message.get("number")
        item, _ = life.asked.pop(number, (None, 0.0)) if isinstance(number, int) else (None, 0.0)
        if item is None:
            return
        if message.get("ok") is not True:
            self._finish(item, now, str(message.get("error") or "refused")[:REASON_LENGTH_MAX])
            return
        if item.action == "heal":
            for fault, peer in list(life.faults):
                if item.step.peer in ("", "*", peer):
                    self._heal(life, fault, peer, now)
        else:
            self._hold(life, item, now)
        self._finish(item, now)

    def _hold(self, life: Life, item: Item, now: Moment) -> None:
        step = item.step
        fault = Fault(step.value, None, None, step.number)
        fields = {"process": life.process.id, "fault": step.fault, "peer": step.peer, "value": step.value}
        if step.for_s is not None:
            fault.until = item.actual + step.for_s
            fault.until_mono = now.mono + step.for_s
            fields["until"] = round(fault.until, 6)
        life.faults[step.fault, step.peer] = fault
        self._ledger.write(now, "fault", **fields, number=step.number)

    def _heal(self, life: Life, fault: str, peer: str, now: Moment) -> None:
        held = life.faults.pop((fault, peer))
        self._ledger.write(now, "healed", process=life.process.id, fault=fault, peer=peer, value=held.value)

    def _link(self, life: Life, message: Mapping[str, Any], now: Moment) -> None:
        peer, up, reason = message.get("peer"), message.get("up"), message.get("reason")
        if not isinstance(peer, str) or not isinstance(up, bool) or len(peer) > PEER_LENGTH_MAX:
            return
        if life.links.get(peer) == up or (peer not in life.links and len(life.links) >= LINKS_MAX):
            return
        life.links[peer] = up
        if self._may_write(life, now):
            why = {"reason": str(reason)[:REASON_LENGTH_MAX]} if reason else {}
            self._ledger.write(now, "link", process=life.process.id, peer=peer, up=up, **why)

    def _may_write(self, life: Life, now: Moment) -> bool:
        life.said = max(0.0, life.said - (now.mono - life.said_at) * LINES_PER_S)
        life.said_at = now.mono
        if life.said > LINES_BURST:
            return False
        life.said += 1
        if life.said > LINES_BURST:
            text = f"{life.process.id} says more of its links than is written down"
            self._ledger.write(now, "trouble", text=text)
            return False
        return True

    def tick(self, lives: Mapping[str, Life], now: Moment) -> None:
        """Faults whose lease is over have healed in their process; who does not answer is given up."""
        for life in lives.values():
            if life.faults:
                over = [key for key, held in life.faults.items() if (held.until_mono or 1e300) <= now.mono]
                for fault, peer in over:
                    self._heal(life, fault, peer, now)
            for number, (item, limit) in list(life.asked.items()) if life.asked else ():
                if limit <= now.mono:
                    del life.asked[number]
                    self._finish(item, now, f"{life.process.id} did not answer in {ANSWER_WITHIN_S:g} s")

    def next_at(self, lives: Mapping[str, Life]) -> float | None:
        times = [limit for life in lives.values() for _, limit in life.asked.values()]
        for life in lives.values():
            times += [held.until_mono for held in life.faults.values() if held.until_mono is not None]
        return min(times, default=None)

    def lost(self, life: Life, now: Moment, why: str) -> None:
        """The line is gone, and with the process its faults."""
        life.has_line = False
        for item, _ in list(life.asked.values()):
            self._finish(item, now, f"{life.process.id} cannot be told: {why}")
        life.asked.clear()
        if life.phase != RUNNING or why == "it ended":
            for fault, peer in list(life.faults):
                self._heal(life, fault, peer, now)

    def told(self, life: Life) -> list[dict[str, object]]:
        return [
            {
                "process": life.process.id,
                "fault": fault,
                "peer": peer,
                "value": held.value,
                "until": held.until,
            }
            for (fault, peer), held in life.faults.items()
        ]
