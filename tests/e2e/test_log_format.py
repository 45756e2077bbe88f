"""docs/log-format.md and the code say the same: every kind, every field, every type."""

import ast
import json
import re
from pathlib import Path
from random import Random

import pytest

from broker_runtime.broker import Broker, BrokerSettings, Instruments
from broker_runtime.client import ClientOptions, NotAdvertised, connect
from broker_runtime.seam import Log, Tick
from tests.support.processes import Processes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "log-format.md").read_text()
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
COMMON = {"v": int, "t": float, "host": str, "run": str, "proc": str, "kind": str}
Fields = dict[str, tuple[bool, str]]


def documented() -> dict[str, Fields]:
    kinds = {}
    for kind, cells in re.findall(r"^\| `(\w+)` \| (?:broker|client)[^|]*\|([^|]*)\|", PAGE, re.MULTILINE):
        fields = re.findall(r"`(\w+)`(\??) (\w+)", cells)
        kinds[kind] = {name: (bool(optional), type_) for name, optional, type_ in fields}
    return kinds


def written_kinds() -> set[str]:
    """The literal kinds of every call that logs."""
    kinds: set[str] = set()
    for path in (ROOT / "broker_runtime").rglob("*.py"):
        if "sim" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = ast.unparse(node.func)
            if called.endswith("_log") or re.fullmatch(r"(self\._log|log)\.write", called):
                kinds |= literal_kinds(node.args[0])
    return kinds


def literal_kinds(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.JoinedStr):  # f"{kind}_up": a link or a client
        end = node.values[-1]
        assert isinstance(end, ast.Constant)
        return {f"{who}{end.value}" for who in ("link", "client")}
    return set()


def check(kind: str, fields: dict[str, object]) -> None:
    schema = documented()[kind]
    assert set(fields) <= set(schema), f"{kind}: {set(fields) - set(schema)} is not documented"
    for name, (optional, type_) in schema.items():
        if name not in fields:
            assert optional, f"{kind} lacks {name}"
        else:
            assert isinstance(fields[name], TYPES[type_]), f"{kind}.{name} is {fields[name]!r}"
            assert isinstance(fields[name], bool) == (type_ == "boolean"), f"{kind}.{name} is no {type_}"


def check_file(path: Path) -> set[str]:
    kinds = set()
    last = 0.0
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        assert all(isinstance(fields[name], type_) for name, type_ in COMMON.items()), line
        assert fields["v"] == 1
        assert fields["t"] >= last
        last = fields["t"]
        kinds.add(fields["kind"])
        check(fields["kind"], {name: value for name, value in fields.items() if name not in COMMON})
    return kinds


def test_the_page_names_every_kind_that_is_written_and_no_other() -> None:
    assert set(documented()) == written_kinds()


def test_the_example_lines_are_valid() -> None:
    examples = re.findall(r"^\{.*\}$", PAGE, re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        fields = json.loads(example)
        check(fields["kind"], {name: value for name, value in fields.items() if name not in COMMON})


async def test_real_logs_are_as_documented(processes: Processes) -> None:
    a = processes.broker("A", options=["--log-every", "1"])
    b = processes.broker("B", "A", "127.0.0.1:1", options=["--log-every", "1", "--run", "r"])
    b.wait_for("link with A is up", b.stderr)
    c = processes.broker("C", "A", "B")
    c.wait_for("would close a cycle", c.stderr)
    options = ClientOptions(log=processes.folder / "X.jsonl", log_every=1)
    async with connect(processes.addresses["A"], "X", options=options) as x:
        await x.control("B", "pause")
        await x.control("B", "resume")
        sub = await x.subscribe("[class,eq,'S']")
        await x.advertise("[class,eq,'S']")
        await x.publish("[class,'S']")
        await sub.get(5)
        with pytest.raises(NotAdvertised):
            await x.publish("[class,'T']")
        assert a.terminate() == 0
    assert (b.terminate(), c.terminate()) == (0, 0)
    kinds = set().union(*(check_file(processes.folder / f"{name}.jsonl") for name in "ABCX"))
    rare = {"memory", "counts", "notice", "refused", "fault", "heal"}  # the faults have tests of their own
    assert set(documented()) - kinds <= rare


def test_what_a_broker_says_of_its_memory_and_traffic_is_as_documented() -> None:
    settings = BrokerSettings(id="A", memory_watermark_bytes=1)
    broker = Broker(settings, Random(1), 0.0, Instruments(memory=lambda: 2))
    effects = [*broker.endpoint.drain_effects(), *broker.handle(Tick(), 6.0)]
    logs = [effect for effect in effects if isinstance(effect, Log)]
    assert [log.kind for log in logs] == ["start", "memory"]
    for log in logs:
        check(log.kind, dict(log.fields))
