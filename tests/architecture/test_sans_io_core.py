"""The core of the runtime asks nobody what time it is and opens nothing.

Its imports are the business of the import contracts; here are the calls that need no forbidden import.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "broker_runtime"

CLOCK_READINGS = {"now", "utcnow", "today"}
EFFECTS = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}


def shell_rooms() -> set[str]:
    """The rooms that may do I/O: those that the import contract excepts."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["id"] == "sans-io-core")
    return set(re.findall(r"broker_runtime\.(\w+)", " ".join(contract["ignore_imports"])))


def core_modules() -> list[Path]:
    shell = shell_rooms()
    return sorted(
        path
        for path in RUNTIME.rglob("*.py")
        if path.relative_to(RUNTIME).with_suffix("").parts[0] not in shell
    )


def impure_calls(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    dates = names_from_datetime(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = ast.unparse(node.func)
        receiver, _, method = function.rpartition(".")
        if function in EFFECTS or (method in CLOCK_READINGS and receiver.partition(".")[0] in dates):
            yield f"line {node.lineno}: {function}()"


def names_from_datetime(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module == "datetime")
        for alias in node.names
        if isinstance(node, ast.ImportFrom) or alias.name == "datetime"
    }


@pytest.mark.parametrize("path", core_modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_core_module_reads_no_clock_and_opens_nothing(path: Path) -> None:
    assert list(impure_calls(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import datetime as dt\ndt.date.today()",
        "from datetime import datetime\ndatetime.utcnow()",
        "from datetime import datetime as moment\nmoment.now()",
        "open('log')",
        "__import__('socket')",
    ],
)
def test_an_impure_call_is_noticed(source: str) -> None:
    assert len(list(impure_calls(source))) == 1


@pytest.mark.parametrize(
    "source",
    ["from datetime import datetime\ndatetime.fromisoformat('2010-01-01')", "clock.now()", "door.open()"],
)
def test_a_value_or_an_argument_is_not_a_clock(source: str) -> None:
    assert list(impure_calls(source)) == []
