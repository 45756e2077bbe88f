"""docs/log-format.md and the code say the same: every kind, every field, every type."""

import ast
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker_runtime.broker import Broker, BrokerSettings, Instruments
from broker_runtime.client import ClientOptions, NotAdvertised, connect
from broker_runtime.seam import Log, Tick
from tests.support.processes import Processes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "log-format.md").read_text()
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "list": list,
}
COMMON = {"v": int, "t": float, "host": str, "run": str, "proc": str, "kind": str}
Fields = dict[str, tuple[bool, str]]


def documented() -> dict[str, Fields]:
    kinds = {}
    for kind, cells in re.findall(r"^\| `(\w+)` \| (?:broker|client)[^|]*\|([^|]*)\|", PAGE, re.MULTILINE):
        fields = re.findall(r"`(\w+)`(\??) (\w+)", cells)
        kinds[kind] = {name: (bool(optional), type_) for name, optional, type_ in fields}
    return kinds


def table(heading: str) -> Fields:
    """The fields of a table that tells of what stands inside others."""
    rows = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    fields = re.findall(r"^\| `(\w+)`(\??) \| ([^|]+) \|", rows, re.MULTILINE)
    return {name: (bool(optional), type_) for name, optional, type_ in fields}


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


def is_a(type_: str, value: object) -> bool:
    if type_.startswith("list of "):
        return isinstance(value, list) and all(is_a(type_.removeprefix("list of "), each) for each in value)
    if type_.endswith(" or null") and value is None:
        return True
    plain = type_.removesuffix(" or null")
    return isinstance(value, TYPES[plain]) and isinstance(value, bool) == (plain == "boolean")


def check(kind: str, fields: dict[str, Any]) -> None:
    check_fields(kind, documented()[kind], fields)
    if kind == "publish":
        for name, (_, type_) in table("field of `publish`").items():
            if name in fields:
                assert fields[name], f"{name} is empty"
                assert all(is_a(type_, value) for value in fields[name].values()), fields
    for predicate in fields.get("filter", ()):
        check_fields(f"a predicate of {kind}", table("field of a predicate"), predicate)
        operands = set(predicate) - {"attribute", "op"}
        assert len(operands) == 1, predicate
        assert (operands == {"type"}) == (predicate["op"] == "isPresent")
    assert is_a("list of string", list(fields.get("to", ()))), fields


def check_fields(what: str, schema: Fields, fields: dict[str, Any]) -> None:
    assert set(fields) <= set(schema), f"{what}: {set(fields) - set(schema)} is not documented"
    for name, (optional, type_) in schema.items():
        if name not in fields:
            assert optional, f"{what} lacks {name}"
        else:
            assert is_a(type_, fields[name]), f"{what}: {name} is {fields[name]!r}, no {type_}"


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
    assert len(examples) == 4
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
        adv = await x.advertise("[class,eq,'S']")
        await x.publish("[class,'S']")
        await sub.get(5)
        await sub.unsubscribe()
        await adv.unadvertise()
        with pytest.raises(NotAdvertised):
            await x.publish("[class,'T']")
        assert a.terminate() == 0
    assert (b.terminate(), c.terminate()) == (0, 0)
    kinds = set().union(*(check_file(processes.folder / f"{name}.jsonl") for name in "ABCX"))
    rare = {"memory", "notice", "refused", "fault", "heal"}  # the faults have tests of their own
    assert set(documented()) - kinds <= rare


def test_what_a_broker_says_of_its_memory_and_traffic_is_as_documented() -> None:
    settings = BrokerSettings(id="A", memory_watermark_bytes=1)
    broker = Broker(settings, Random(1), 0.0, Instruments(memory=lambda: 2, cpu=lambda: 0.25))
    effects = [*broker.endpoint.drain_effects(), *broker.handle(Tick(), 6.0)]
    logs = [effect for effect in effects if isinstance(effect, Log)]
    assert [log.kind for log in logs] == ["start", "load", "memory"]
    for log in logs:
        check(log.kind, dict(log.fields))
    assert (logs[1].fields["memory_bytes"], logs[1].fields["cpu_s"]) == (2, 0.25)


def test_the_page_explains_every_figure_of_a_broker() -> None:
    rows = PAGE.partition("\n| field of `load` |")[2].partition("\n\n")[0]
    names = [name for row in rows.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    assert sorted(names) == sorted(documented()["load"])
