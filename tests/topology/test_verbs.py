"""`panda validate`, `convert` and `generate` print results to stdout and exit as they should."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from broker_runtime.commands.main import main as runtime
from broker_runtime.dialect.scripts import START_SCRIPTS, TABLES
from panda.cli.convert import convert
from panda.cli.exits import Exit
from panda.cli.generate import generate
from panda.cli.validate import validate

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
BIN = Path(__file__).parents[2] / "broker_runtime" / "bin"


def panda(*arguments: str | Path) -> Result:
    app = typer.Typer()
    for verb in (validate, convert, generate):
        app.command()(verb)
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)


def test_validate_sums_up_what_is_well() -> None:
    answer = panda("validate", TOPOLOGIES / "stock-quotes.txt")
    assert answer.exit_code == Exit.DONE
    assert answer.stdout.endswith("3 brokers, 2 clients on 3 hosts, 2 links; 8 steps over 8 s\n")


def test_validate_shows_every_problem_of_every_file(tmp_path: Path) -> None:
    bad, worse = tmp_path / "bad.txt", tmp_path / "worse.yaml"
    bad.write_text("0 ADDD x\n5 MARK\n")
    worse.write_text("broker: 5\n")
    answer = panda("validate", bad, worse)
    assert answer.exit_code == Exit.REFUSED
    assert (
        f"{bad}:1:3: error: unknown verb ADDD\n  0 ADDD x\n    ^\n  hint: did you mean ADD?" in answer.stdout
    )
    assert f"{bad}:2:7: error: MARK needs a text" in answer.stdout
    assert f"{worse}:1:1: error: unknown key broker" in answer.stdout


def test_validate_is_strict_on_demand() -> None:
    papers = TOPOLOGIES / "papers.txt"
    assert panda("validate", papers).exit_code == Exit.DONE
    assert panda("validate", papers, "--strict").exit_code == Exit.REFUSED


def test_validate_speaks_json() -> None:
    answer = panda("validate", TOPOLOGIES / "papers.txt", "--json")
    told = json.loads(answer.stdout)
    assert (told["valid"], told["errors"], told["warnings"], told["brokers"]) == (True, 0, 1, 1)
    assert told["problems"][0]["line"] == 3


def test_variables_come_from_the_command_line() -> None:
    answer = panda("validate", TOPOLOGIES / "chain.txt", "-D", "brokers=10")
    assert "10 brokers, 2 clients on 10 hosts, 9 links" in answer.stdout
    assert panda("validate", TOPOLOGIES / "chain.txt", "-D", "brokers").exit_code == Exit.REFUSED


def test_convert_there_and_back(tmp_path: Path) -> None:
    yaml, text = tmp_path / "t.yaml", tmp_path / "t.txt"
    assert (
        panda("convert", TOPOLOGIES / "stock-quotes.txt", "--to", "yaml", "-o", yaml).exit_code == Exit.DONE
    )
    assert panda("convert", yaml, "--to", "text", "-o", text).exit_code == Exit.DONE
    assert panda("convert", text, "--to", "yaml").stdout.splitlines()[1:] == yaml.read_text().splitlines()[1:]


def test_convert_refuses_what_is_not_valid(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("0 ADDD x\n")
    answer = panda("convert", bad, "--to", "yaml")
    assert answer.exit_code == Exit.REFUSED
    assert answer.stdout == ""
    assert "unknown verb" in answer.stderr


def test_generate_prints_a_topology_and_warns_of_cycles(tmp_path: Path) -> None:
    text = tmp_path / "tree.txt"
    wish = ["--brokers", "7", "--host", "n1", "--host", "n2", "--publishers", "2", "--subscribers", "3"]
    assert panda("generate", "tree", *wish, "-o", text).exit_code == Exit.DONE
    assert "7 brokers, 5 clients on 2 hosts, 6 links" in panda("validate", text, "--strict").stdout
    ring = panda("generate", "ring")
    assert ring.exit_code == Exit.DONE
    assert "cycles" in ring.stdout
    assert "cycles" in ring.stderr


def test_generate_refuses_what_cannot_be() -> None:
    assert panda("generate", "rign").exit_code == Exit.REFUSED
    assert panda("generate", "chain", "--brokers", "0").exit_code == Exit.REFUSED
    assert panda("generate", "chain", "--templates", "/no/such/file").exit_code == Exit.REFUSED


@pytest.mark.parametrize("word", ["client", "publish", "subscribe", "workload"])
def test_the_tables_know_the_options_that_the_commands_take(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runtime([word, "--help"]) == 0
    usage = capsys.readouterr().out.partition("\n\n")[0]
    taken = {part.strip("[]") for part in usage.split() if part.startswith("[-")}
    known = {name for option in TABLES[word] for name in option.names}
    assert taken <= known
    assert all(taken & set(option.names) for option in TABLES[word])


@pytest.mark.parametrize("script", START_SCRIPTS)
def test_every_start_script_is_there_in_both_spellings(script: str) -> None:
    names = {path.name.lower() for path in BIN.iterdir()}
    assert {script, f"{script}.sh"} <= names
