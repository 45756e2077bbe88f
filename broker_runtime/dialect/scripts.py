"""Decides what the start scripts accept: the option tables of brokers, publishers, subscribers, workloads.

Two dialects name a broker: `-hostname H -p PORT -i ID -n host:port,…` and `-uri socket://H:PORT/ID -n URI,…`.
Both are read here, into one `BrokerWords`; nothing is opened, so that a topology can be checked with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from broker_runtime.addresses import Address, parse_address
from broker_runtime.dialect import readers
from broker_runtime.dialect.options import HELP, Option, Reading, read_arguments, text
from broker_runtime.language.parsing import parse_publication, parse_subscription
from broker_runtime.language.problems import LanguageError

START_SCRIPTS: Final = {
    "startbroker": "broker",
    "startclient": "client",
    "startsqpublisher": "sqpublisher",
    "startsqsubscriber": "sqsubscriber",
    "startpublisher": "publish",
    "startsubscriber": "subscribe",
    "startworkload": "workload",
}
COVERINGS: Final = ("off", "lazy", "active")
LEVELS: Final = ("off", "error", "info", "debug")
_LEVEL_OF: Final = {"fatal": "error", "warn": "info", "warning": "info", "trace": "debug", "all": "debug"}
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)  # for texts that are checked and not yet meant
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_BROKER: Final = Address("127.0.0.1", 10_000)


def _cyclic(word: str) -> str:
    if word.lower() not in ("off", "on", "fixed", "dynamic"):
        raise ValueError("it is off, on, fixed or dynamic")
    if word.lower() != "off":
        raise ValueError("overlays with cycles are not supported yet; say off, and leave out one link")
    return "off"


def _covering(word: str) -> str:
    return readers.one_of(*COVERINGS)("active" if word.lower() == "on" else word)


def _database(word: str) -> str:
    raise ValueError("a broker with a database is not supported yet; leave the option out")


def _level(word: str) -> str:
    return readers.one_of(*LEVELS)(_LEVEL_OF.get(word.lower(), word))


def _subscriptions(written: str) -> tuple[str, ...]:
    return tuple(_of_the_language(parse_subscription, part) for part in readers.split_outside(written, "/"))


def _subscription(written: str) -> str:
    return _of_the_language(parse_subscription, written, now=_ANY_MOMENT)


def _publication(written: str) -> str:
    return written if written == "-" else _of_the_language(parse_publication, written, now=_ANY_MOMENT)


def _of_the_language(parse: Callable[..., object], written: str, now: datetime | None = None) -> str:
    try:
        parse(written, now=now)
    except LanguageError as error:
        raise ValueError("; ".join(problem.pointing() for problem in error.problems)) from None
    return written


def _symbols(written: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text(written).split("/") if part.strip())


def _rates(written: str) -> tuple[float, ...]:
    try:
        rates = tuple(float(part) for part in written.split("/") if part.strip())
    except ValueError:
        raise ValueError("it is a number of messages per minute, or several separated by /") from None
    if not rates or not all(0 < rate < 1e9 for rate in rates):
        raise ValueError("a rate is more than 0 messages per minute")
    return rates


def _option(names: str, key: str, help_: str, value: str = "", read: Callable[[str], Any] = text) -> Option:
    return Option(names=tuple(names.split()), key=key, help=help_, value=value, read=read)


_LOG: Final = (
    _option("--log", "log", "write a log of JSON lines to this file", "FILE"),
    _option("--log-every", "log_every", "log each N-th publication; 0 none, 1 all", "N", readers.count),
    _option("--run", "run", "name of the run, for the log", "NAME"),
    _option("--token-file", "token_file", "file with the shared token (or set PANDA_TOKEN)", "FILE"),
    _option("--json", "json", "print results as JSON lines"),
    HELP,
)
_TRAFFIC: Final = (
    _option("-i --id", "id", "id of the client", "ID", readers.identifier),
    _option("-b --broker", "broker", f"host:port or URI ({DEFAULT_BROKER})", "BROKER", readers.target),
    _option("-d --delay", "delay_s", "seconds to wait before the first message", "S", readers.seconds),
    _option("--count", "count", "stop after so many", "N", readers.positive),
    _option("--duration", "duration_s", "stop after so long", "S", readers.seconds),
)

BROKER: Final[tuple[Option, ...]] = (
    _option("-i --id", "id", "id of the broker", "ID", readers.identifier),
    _option("-hostname --hostname", "hostname", f"address to listen at ({DEFAULT_HOST})", "HOST"),
    _option("-p --port", "port", "port to listen at; 0 takes a free one", "PORT", readers.port),
    _option("-uri --uri", "uri", "all three at once: socket://HOST:PORT/ID", "URI", readers.address),
    _option(
        "-n --neighbours --neighbors",
        "neighbours",
        "brokers to link with: host:port or URI",
        "A,B,…",
        readers.targets,
    ),
    _option("-c --config", "config", "file with any of these options, JSON or TOML", "FILE"),
    _option("-cy --cyclic", "cyclic", "only off, for now: the overlay has no cycles", "off", _cyclic),
    _option("-s --subscription-covering", "covering", "off, lazy or active (the default)", "MODE", _covering),
    _option("-a --advertisement-covering", "advertisement_covering", "the same", "MODE", _covering),
    _option("--covering", "both_coverings", "both at once", "MODE", _covering),
    _option(
        "-h --heartbeat",
        "heartbeat",
        "on, off (never give up a silent peer), or seconds between two (2)",
        "on|off|S",
        readers.heartbeat,
    ),
    _option(
        "--dead-after", "dead_after_s", "seconds of silence that break a link (10)", "S", readers.seconds
    ),
    _option("-b --database", "database", "not supported yet", "FILE", _database),
    _option("-ll --log-level", "log_level", "off, error, info (default) or debug", "LEVEL", _level),
    Option(
        names=("-Xmx", "--memory"),
        key="memory",
        help="hold clients' input above so much memory; a plain number is in MB",
        value="SIZE",
        read=readers.megabytes,
        glued=True,
    ),
    Option(
        names=("-Xms",),
        key="memory_at_start",
        help="accepted, and of no effect here",
        value="SIZE",
        read=readers.megabytes,
        glued=True,
    ),
    _option("--status-every", "status_every_s", "seconds between two BROKER_INFO (5)", "S", readers.seconds),
    _option("--no-monitor", "no_monitor", "no BROKER_INFO, and no control from outside"),
    _option("--no-publication-check", "no_check", "take what was never advertised"),
    _option("--queue-length-max", "queue_length_max", "records per link (20000)", "N", readers.positive),
    _option("--queue-bytes-max", "queue_bytes_max", "bytes per link (64m)", "SIZE", readers.megabytes),
    _option(
        "--session-expiry",
        "session_expiry_s",
        "seconds a lost peer may take to return (60)",
        "S",
        readers.seconds,
    ),
    _option("--quiet", "quiet", "say nothing on stderr while all is well"),
    *_LOG,
)

SQ_PUBLISHER: Final[tuple[Option, ...]] = (
    *_TRAFFIC,
    _option("-s --symbols", "symbols", "stocks to quote, separated by /", "YHOO/MSFT", _symbols),
    _option("-r --rate", "rates", "messages per minute, one or one for each (60)", "60/30", _rates),
    _option("--poisson", "poisson", "random spacing with the same rate"),
    _option("--seed", "seed", "same seed, same quotes (0)", "N", readers.count),
    *_LOG,
)

SQ_SUBSCRIBER: Final[tuple[Option, ...]] = (
    *_TRAFFIC,
    _option(
        "-s --subscriptions",
        "subscriptions",
        "what to subscribe to, separated by /",
        "\"[class,eq,'STOCK'],…\"",
        _subscriptions,
    ),
    _option("--quiet", "quiet", "count notifications instead of printing them"),
    *_LOG,
)

# The rows of the words that read their arguments with argparse, as far as a topology can check them.
_CONNECTION: Final = (
    _option("-b --broker", "broker", f"host:port or URI ({DEFAULT_BROKER})", "ADDRESS", readers.target),
    _option("-i --id", "id", "id of this client", "ID", readers.identifier),
    _option(
        "--connect-timeout", "connect_timeout_s", "how long to wait for the broker", "S", readers.seconds
    ),
    *_LOG[:-1],
    _option("-h --help", "help", "show this and exit"),
)
_PUBLISH: Final = (
    _option("-a --advertise", "advertise", "advertise this, not what is published", "TEXT"),
    _option("--payload", "payload", "send this file's bytes along", "FILE"),
    *_CONNECTION,
)
_SUBSCRIBE: Final = (
    _option("--count", "count", "stop after so many", "N", readers.positive),
    _option("--timeout", "timeout_s", "stop after so long", "S", readers.seconds),
    *_CONNECTION,
)
_WORKLOAD: Final = (
    _option("--class", "class", "class of the messages", "CLASS"),
    _option("--attributes", "attributes", "how many there are", "N", readers.positive),
    _option("--per-message", "per_message", "attributes of each", "A..B"),
    _option("--values", "values", "of attributes", "A..B"),
    _option("--zipf", "zipf", "exponent; 0 is uniform", "S"),
    _option("--operators", "operators", "of subscriptions", "=,<,…"),
    _option("--rate", "rate", "per second", "R"),
    _option("--poisson", "poisson", "random spacing with the same rate"),
    _option("--seed", "seed", "same seed, same messages", "N", readers.count),
    _option("--count", "count", "stop after so many", "N", readers.positive),
    _option("--duration", "duration_s", "stop after so long", "S", readers.seconds),
    _option("--payload-bytes", "payload_bytes", "of each publication", "N", readers.count),
    _option("--print", "print", "print instead of sending"),
    *_CONNECTION,
)
_KIND: Final = readers.one_of("publish", "subscribe")
_RESTS: Final[Mapping[str, Option]] = {
    "publish": _option("", "publications", "or - for lines of stdin", "publication", _publication),
    "subscribe": _option("", "subscriptions", "what to subscribe to", "subscription", _subscription),
    "workload": _option("", "kind", "publish or subscribe", "kind of workload", _KIND),
}

TABLES: Final[Mapping[str, tuple[Option, ...]]] = {
    "broker": BROKER,
    "sqpublisher": SQ_PUBLISHER,
    "sqsubscriber": SQ_SUBSCRIBER,
    "client": _CONNECTION,
    "publish": _PUBLISH,
    "subscribe": _SUBSCRIBE,
    "workload": _WORKLOAD,
}
_REQUIRED: Final = {
    "sqpublisher": {"id": "-i ID", "symbols": "-s SYMBOLS"},
    "sqsubscriber": {"id": "-i ID", "subscriptions": "-s SUBSCRIPTIONS"},
    "client": {},
    "publish": {"publications": "a publication"},
    "subscribe": {"subscriptions": "a subscription"},
    "workload": {"kind": "publish or subscribe"},
}


@dataclass(frozen=True, slots=True)
class BrokerWords:
    """Who a broker is and whom it links with; `values` holds the rest, by key."""

    listen: Address
    neighbours: tuple[str, ...]
    values: Mapping[str, Any]
    neighbour_ids: Mapping[str, str]  # by address, where a URI says one


def word_of(command: str) -> str | None:
    """The word that a start script stands for: `bin/startbroker` and `startSQpublisher.sh` alike."""
    return START_SCRIPTS.get(command.rpartition("/")[2].removesuffix(".sh").lower())


def read_client(word: str, arguments: Iterable[str]) -> Reading:
    """The options of any word but `broker`, complete or with problems."""
    reading = read_arguments(TABLES[word], arguments, _RESTS.get(word))
    values = reading.values
    if "help" not in values:
        if not reading.problems:
            missing = [shown for key, shown in _REQUIRED[word].items() if key not in values]
            reading.problems.extend(f"{shown} is missing" for shown in missing)
        values.setdefault("broker", DEFAULT_BROKER)
        symbols, rates = values.get("symbols", ()), values.get("rates", ())
        if symbols and len(rates) > 1 and len(rates) != len(symbols):
            reading.problems.append(
                f"-r has {len(rates)} rates for {len(symbols)} symbols: give one, or one each"
            )
    return reading


def broker_words(values: Mapping[str, Any]) -> BrokerWords | list[str]:
    """What the two dialects have in common, or what is wrong."""
    uri: Address | None = values.get("uri")
    host = values.get("hostname") or (uri.host if uri else DEFAULT_HOST)
    port = values.get("port", uri.port if uri else None)
    id_ = values.get("id") or (uri.id if uri else "")
    problems = []
    if uri is not None and (host, port, id_) != (uri.host, uri.port, uri.id or id_):
        problems.append("-uri and -hostname, -p or -i say different things: use one dialect")
    if not id_:
        problems.append("the id is missing: say -i ID, or -uri socket://HOST:PORT/ID")
    elif uri is not None and uri.id:
        try:
            readers.identifier(uri.id)
        except ValueError as error:
            problems.append(f"-uri: {error}")
    if port is None:
        problems.append("the port is missing: say -p PORT, or -uri socket://HOST:PORT/ID")
    if problems:
        return problems
    assert port is not None
    listen = Address(host, port, id_)
    dialled = [parse_address(text) for text in values.get("neighbours", ())]
    neighbours = tuple(map(str, dialled))
    if str(listen) in neighbours:
        return [f"-n {listen}: a broker is no neighbour of itself"]
    return BrokerWords(listen, neighbours, values, {str(each): each.id for each in dialled if each.id})
