"""The command line answers at once, and its exit codes mean what `panda.cli.exits` says."""

import json
import subprocess
import sys

import pytest

from broker_runtime import VERSION
from panda.cli.exits import Exit

HEAVY = {
    "ansible",
    "ansible_runner",
    "asyncio",
    "fabric",
    "jinja2",
    "msgspec",
    "numpy",
    "paramiko",
    "pyspark",
    "rich",
    "textual",
    "yaml",
}


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        check=False,
    )


def panda(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python("from panda.cli.main import main; main()", *arguments)


def panda_with_a_verb_that_raises(error: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"""
from panda.cli.main import app, main

@app.command()
def stumble():
    raise {error}

main()
"""
    return run_python(code, "stumble", **environment)


def test_help_names_the_verbs_on_stdout() -> None:
    answer = panda("--help")
    assert answer.returncode == Exit.DONE
    assert "Usage: " in answer.stdout
    assert "version" in answer.stdout
    assert answer.stderr == ""


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from panda.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
    answer = run_python(code, "--help")
    assert answer.returncode == Exit.DONE
    loaded = {module.partition(".")[0] for module in answer.stderr.split()}
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_version_is_the_runtimes_version() -> None:
    assert panda("--version").stdout == f"panda {VERSION}\n"
    assert json.loads(panda("version", "--json").stdout)["panda"] == VERSION


@pytest.mark.parametrize("arguments", [[], ["no-such-verb"], ["version", "--no-such-option"]])
def test_a_usage_error_exits_2(arguments: list[str]) -> None:
    assert panda(*arguments).returncode == Exit.REFUSED


def test_a_usage_error_leaves_stdout_empty() -> None:
    answer = panda("no-such-verb")
    assert answer.stdout == ""
    assert "no-such-verb" in answer.stderr


def test_a_bug_is_one_line_and_exit_70() -> None:
    answer = panda_with_a_verb_that_raises("AssertionError('no broker')")
    assert answer.returncode == Exit.BUG
    assert answer.stdout == ""
    assert answer.stderr == "panda: internal error: AssertionError: no broker (please report)\n"


def test_a_bug_shows_its_traceback_when_asked() -> None:
    answer = panda_with_a_verb_that_raises("AssertionError('no broker')", PANDA_DEBUG="1")
    assert answer.returncode == Exit.BUG
    assert answer.stderr.startswith("Traceback")
    assert answer.stderr.endswith("(please report)\n")


def test_an_interrupt_exits_130_without_a_traceback() -> None:
    answer = panda_with_a_verb_that_raises("KeyboardInterrupt")
    assert answer.returncode == Exit.INTERRUPTED
    assert "Traceback" not in answer.stderr


def test_a_verb_chooses_its_exit_code() -> None:
    answer = panda_with_a_verb_that_raises("__import__('typer').Exit(4)")
    assert answer.returncode == Exit.GATE_NOT_MET


@pytest.mark.parametrize("words", ["--help", "version"])
def test_output_that_cannot_be_written_is_said_in_one_line(words: str) -> None:
    code = "from panda.cli.main import main; main()"
    with open("/dev/full", "w") as full:  # noqa: PTH123
        answer = subprocess.run(
            [sys.executable, "-c", code, words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert answer.returncode == Exit.FAILED
    assert answer.stderr == "panda: cannot write: No space left on device\n"
