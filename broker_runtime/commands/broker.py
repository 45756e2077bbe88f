"""`broker`: one broker of the overlay, until SIGTERM, SIGINT or a shutdown command."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from broker_runtime.broker import BrokerSettings
from broker_runtime.client.errors import plain_reason
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import line_of_process, log_file, read_token, told
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.dialect.options import Reading, options_text, read_arguments, read_mapping
from broker_runtime.dialect.scripts import BROKER, BrokerWords, broker_words
from broker_runtime.link.session import LinkSettings
from broker_runtime.net.line import Line
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer
from broker_runtime.routing.forwarding import Covering

STATUS_EVERY_S: Final = 5.0
NEVER_DEAD_S: Final = 1e8
CONFIG_BYTES_MAX: Final = 1 << 20
_ERROR_KINDS: Final = frozenset(
    ("error", "refuse", "refused", "dial_failed", "memory", "start", "stop", "fault", "heal")
)
_REPORTED_KINDS: Final = frozenset(("ready", "link_up", "link_down"))

HELP: Final = f"""usage: python -m broker_runtime broker -i ID -p PORT [-hostname HOST] [-n host:port,…]
       python -m broker_runtime broker -uri socket://HOST:PORT/ID [-n URI,URI]

Run one broker of the overlay until SIGTERM, SIGINT or a shutdown command.
Prints `ready ID HOST:PORT` on stdout once it listens.

options:
{options_text(BROKER)}

example:
  startbroker.sh -Xms 64 -Xmx 128 -hostname 127.0.0.1 -p 10001 -i Bob -n 127.0.0.1:10000
  bin/startbroker -uri socket://127.0.0.1:10001/Bob -n socket://127.0.0.1:10000/Alice"""


class BrokerLog(LogWriter):
    """The broker's log; what a person should know is said on stderr too, what an agent should on its line."""

    def __init__(
        self, path: Path | None, broker: str, run: str, level: str, quiet: bool, line: Line | None
    ) -> None:
        super().__init__(path if level != "off" else None, broker, run)
        self._broker = broker
        self._line = line
        self._errors_only = level == "error"
        self._quiet = quiet
        self._neighbour_ids: dict[str, str] = {}
        self._server: BrokerServer | None = None

    def expect(self, server: BrokerServer, neighbour_ids: Mapping[str, str]) -> None:
        """Warn, once for each address, when the broker there has another id."""
        self._server = server
        self._neighbour_ids = dict(neighbour_ids)

    def write(self, kind: str, fields: Mapping[str, object]) -> None:
        if not self._errors_only or kind in _ERROR_KINDS:
            super().write(kind, fields)
        text = _told(kind, fields)
        if text and (not self._quiet or kind in _ERROR_KINDS):
            printing.note(f"{self._broker}: {text}")
        if self._line is not None and kind in _REPORTED_KINDS:
            self._report(self._line, kind, fields)
        if kind == "link_up" and self._neighbour_ids and self._server is not None:
            self._compare_ids(self._server)

    def _report(self, line: Line, kind: str, fields: Mapping[str, object]) -> None:
        if kind == "ready":
            line.ready(self._broker, str(fields["address"]))
        elif kind == "link_up":
            line.link(str(fields["peer"]), up=True)
        else:
            line.link(str(fields["peer"]), up=False, reason=plain_reason(str(fields["reason"])))

    def _compare_ids(self, server: BrokerServer) -> None:
        for address, wanted in list(self._neighbour_ids.items()):
            target = server.broker.endpoint.targets.get(address)
            if target is not None and target.peer:
                del self._neighbour_ids[address]
                if target.peer != wanted:
                    text = f"the broker at {address} is {target.peer}, not {wanted} as -n says"
                    printing.note(f"{self._broker}: warning: {text}")


def _told(kind: str, fields: Mapping[str, object]) -> str:
    if kind == "link_up":
        return f"link with {fields['peer']} is {'up again' if fields['resumed'] else 'up'}"
    if kind == "link_down":
        return f"link with {fields['peer']} is down: {plain_reason(str(fields['reason']))}"
    if kind == "dial_failed":
        return f"no link to {fields['address']} yet: {plain_reason(str(fields['reason']))}"
    if kind == "error":
        return f"{fields['peer'] or 'a peer'}: {fields['message']} ({fields['code']})"
    if kind == "memory":
        return "above the memory limit, clients wait" if fields["holding"] else "memory is fine again"
    return ""


def run(arguments: Sequence[str]) -> int:
    reading = read_arguments(BROKER, arguments)
    if "help" in reading.values:
        printing.result({}, HELP)
        return Exit.DONE
    if "config" in reading.values:
        reading = _with_config(reading, Path(reading.values["config"]))
    words = broker_words(reading.values) if not reading.problems else reading.problems
    if isinstance(words, list):
        raise Refusal("\n".join(words))
    settings = broker_settings(words)
    values = words.values
    line = line_of_process()
    try:
        log = BrokerLog(
            log_file(values.get("log")),
            settings.id,
            values.get("run", ""),
            values.get("log_level", "info"),
            values.get("quiet", False),
            line,
        )
    except OSError as error:
        raise Refusal(f"--log {told(error)}") from None
    return asyncio.run(_serve(settings, words, log, line))


async def _serve(settings: BrokerSettings, words: BrokerWords, log: BrokerLog, line: Line | None) -> int:
    server = BrokerServer(settings, log, line)
    log.expect(server, words.neighbour_ids)
    server.take_signals()
    try:
        await server.start(words.listen)
    except OSError as error:
        log.close()
        if line is not None:
            await line.close()
        taken = "the port is taken" if error.errno == 98 else plain_reason(str(error))
        raise Refusal(f"cannot listen at {words.listen}: {taken}", Exit.FAILED) from None
    try:
        ready = {"ready": settings.id, "address": str(server.address)}
        printing.result(
            ready, f"ready {settings.id} {server.address}", as_json=words.values.get("json", False)
        )
        reason = await server.run_until_stopped()
    finally:
        await server.close()
    return Exit.INTERRUPTED if reason == "SIGINT" else Exit.DONE


def broker_settings(words: BrokerWords) -> BrokerSettings:
    """The broker that the options describe; Refusal when the token cannot be read."""
    values = words.values
    both = values.get("both_coverings")
    debug = values.get("log_level") == "debug"
    every_s = values.get("status_every_s", STATUS_EVERY_S)
    advertisement_covering = values.get("advertisement_covering", both)
    return BrokerSettings(
        id=words.listen.id,
        neighbours=words.neighbours,
        token=read_token(values.get("token_file")),
        covering=Covering(values.get("covering", both or "active")),
        advertisement_covering=Covering(advertisement_covering or "active"),
        publications_checked=not values.get("no_check", False),
        log_every=values.get("log_every", 1 if debug else 0),
        status_every_s=0.0 if values.get("no_monitor") else every_s,
        memory_watermark_bytes=values.get("memory", 0),
        link=_link_settings(values),
    )


def _link_settings(values: Mapping[str, Any]) -> LinkSettings:
    keys = ("queue_length_max", "queue_bytes_max", "session_expiry_s")
    link = replace(LinkSettings(), **{key: values[key] for key in keys if key in values})
    beat = values.get("heartbeat", True)
    if beat is False:
        return replace(link, dead_after_s=NEVER_DEAD_S)
    if beat is not True:  # a link is given up after five missed heartbeats, as with the defaults
        link = replace(link, heartbeat_s=beat, dead_after_s=5 * beat)
    link = replace(link, dead_after_s=values.get("dead_after_s", link.dead_after_s))
    if link.dead_after_s <= link.heartbeat_s:
        raise Refusal(
            f"--dead-after {link.dead_after_s:g} must be more than --heartbeat {link.heartbeat_s:g}"
        )
    return link


def _with_config(reading: Reading, path: Path) -> Reading:
    """The file's options with the command line's over them."""
    try:
        with path.open("rb") as file:
            data = file.read(CONFIG_BYTES_MAX)
        entries = tomllib.loads(data.decode()) if path.suffix == ".toml" else json.loads(data)
        if not isinstance(entries, dict):
            raise ValueError('it holds no options, such as {"id": "Alice", "port": 10000}')
    except OSError as error:
        raise Refusal(f"-c {path}: {error.strerror}") from None
    except ValueError as error:
        raise Refusal(f"-c {path}: {error}") from None
    filed = read_mapping(BROKER, entries)
    problems = [f"{path}: {problem}" for problem in filed.problems]
    return Reading({**filed.values, **reading.values}, [*reading.problems, *problems])
