"""The import contracts of pyproject.toml bite: each is shown an import that it must refuse.

That the real packages keep them is checked by `make lint`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
PACKAGES = [
    "panda",
    "panda_tui",
    "panda_spark",
    "broker_runtime",
    "broker_runtime/language",
    "broker_runtime/matching",
    "broker_runtime/net",
    "broker_runtime/wire",
]
CLEAN = {
    "broker_runtime/broker.py": "import dataclasses, datetime\nfrom broker_runtime import matching, wire",
    "broker_runtime/client.py": "import asyncio\nfrom broker_runtime import net",
    "broker_runtime/matching/scan.py": "from broker_runtime import language",
    "broker_runtime/net/loop.py": "import asyncio, socket, time\nfrom broker_runtime import broker",
    "broker_runtime/wire/frames.py": "from broker_runtime import language",
    "panda/verb.py": "from broker_runtime import VERSION, client, language",
    "panda_tui/app.py": "from broker_runtime import client\nfrom panda import verb",
}


def check_contracts(house: Path, modules: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for package in PACKAGES:
        (house / package).mkdir(parents=True)
        (house / package / "__init__.py").write_text("VERSION = ''\n")
    for name, source in modules.items():
        (house / name).write_text(source + "\n")
    return subprocess.run(
        [LINT_IMPORTS, "--config", PYPROJECT, "--no-cache", "--no-logo"],
        cwd=house,
        env={"PYTHONPATH": str(house), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_house_with_the_right_arrows_keeps_every_contract(tmp_path: Path) -> None:
    answer = check_contracts(tmp_path, CLEAN)
    assert "0 broken" in answer.stdout, answer.stdout + answer.stderr
    assert answer.returncode == 0


@pytest.mark.parametrize(
    ("module", "source", "contract"),
    [
        ("panda/x.py", "import panda_tui", "panda_tui knows panda"),
        ("broker_runtime/client.py", "import panda", "panda_tui knows panda"),
        ("panda_spark/x.py", "import broker_runtime.language", "panda_spark knows the log format"),
        ("panda/x.py", "import panda_spark", "nobody imports panda_spark"),
        ("panda/x.py", "def f():\n    from pyspark.sql import SparkSession", "do not import Spark"),
        ("panda/x.py", "import broker_runtime.net", "by its client, its pure words"),
        ("panda_tui/x.py", "from broker_runtime import broker", "by its client, its pure words"),
        ("broker_runtime/broker.py", "import broker_runtime.net", "never imports the rooms that drive it"),
        ("broker_runtime/wire/x.py", "import socket", "imports no socket"),
        ("broker_runtime/broker.py", "def f():\n    from time import monotonic", "imports no socket"),
        ("broker_runtime/a_new_room.py", "import random", "imports no socket"),
        ("broker_runtime/language/x.py", "import broker_runtime.broker", "the language knows no other"),
        ("broker_runtime/matching/x.py", "import broker_runtime.wire", "matching and wire know"),
        ("broker_runtime/wire/x.py", "import broker_runtime.matching", "matching and wire know"),
    ],
)
def test_a_wrong_arrow_breaks_its_contract(tmp_path: Path, module: str, source: str, contract: str) -> None:
    answer = check_contracts(tmp_path, {**CLEAN, module: source})
    assert answer.returncode == 1, answer.stdout + answer.stderr
    broken = [line for line in answer.stdout.splitlines() if " BROKEN" in line]
    assert any(contract in line for line in broken), answer.stdout
