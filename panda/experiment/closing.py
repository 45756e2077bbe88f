"""Decides how a run is wound up: stop, bring the logs home, leave nothing behind; hosts side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from broker_runtime.agent.protocol import RequestRefused
from panda.deploy.collecting import Collected, collect
from panda.deploy.session import AgentSession
from panda.experiment.folder import RunFolder
from panda.hosts.remote import HostError

AT_ONCE = 16
STOP_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Closed:
    """What became of one host's part."""

    host: str
    stopped: bool = False
    cleaned: bool = False
    collected: Collected | None = None
    problems: list[str] = field(default_factory=list)


def wind_up(
    sessions: Mapping[str, AgentSession],
    folder: RunFolder,
    *,
    stop: bool = True,
    fetch: bool = True,
    clean: bool = True,
    note: Callable[[str, str], None] = lambda host, what: None,
) -> list[Closed]:
    """Logs are fetched before anything is removed; a host whose logs did not come is not cleaned."""

    def close(session: AgentSession) -> Closed:
        done = Closed(session.host)
        # Cleaned before, by somebody who was killed before saying so: what came home then is all there is.
        empty = stop and session.hello.get("state") == "empty"
        try:
            if stop and not empty:
                note(session.host, "stopping")
                session.request("stop", timeout_s=STOP_TIMEOUT_S)
                done.stopped = True
            if fetch and not empty:
                note(session.host, "collecting")
                done.collected = collect(session, folder.collected(session.host))
                done.problems += done.collected.problems
            if clean and not done.problems:
                note(session.host, "cleaning")
                session.request("clean", timeout_s=STOP_TIMEOUT_S)
                done.cleaned = True
        except HostError as error:
            done.problems.append(error.reason)
        except RequestRefused as refused:
            done.problems.append(refused.message)
        except OSError as error:
            done.problems.append(f"{error.filename or folder.path}: {error.strerror}")
        folder.record("closed", host=done.host, cleaned=done.cleaned, problems=done.problems)
        return done

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(sessions))), "close") as pool:
        closed = list(pool.map(close, sessions.values()))
    folder.tidy()
    return closed
