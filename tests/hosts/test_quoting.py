"""Whatever is in a word, a shell passes it on verbatim."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.hosts.quoting import Unquotable, command_line

HOSTILE = st.sampled_from(
    ["$(touch canary)", "`touch canary`", "; touch canary", "'; touch canary; '", "| tee canary", "> canary"],
) | st.sampled_from(
    [
        "&& touch canary",
        '"',
        "'",
        "-rf",
        "--",
        "\n",
        "\\",
        "${IFS}",
        "*",
        "~",
        "#",
        "!!",
        "../../x",
        "A=b",
        "é\x1b[31m",
    ]
)
WORDS = st.lists(
    st.one_of(HOSTILE, st.text(st.characters(exclude_characters="\0", codec="utf-8"))), max_size=6
)
ECHO = "import sys; sys.stdout.buffer.write(ascii(sys.argv[1:]).encode())"


@settings(max_examples=60)
@given(words=WORDS)
def test_hostile_words_reach_a_program_as_they_are(
    words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "quoting"
    folder.mkdir(exist_ok=True)
    line = command_line([sys.executable, "-S", "-c", ECHO, *words])
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=True, cwd=folder, timeout=20)
    assert done.stdout == ascii(words).encode()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("program", ["if", "eval", "A=b", "exit", "!", "{", "cd"])
def test_a_shell_word_is_only_ever_the_name_of_a_program(program: str, tmp_path: Path) -> None:
    line = command_line([program, "touch canary"])
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, check=False, cwd=tmp_path, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 127
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "argv", [[], [""], ["-c"], ["echo", "a\0b"], ["echo", "\ud800"], ["echo", "x" * 200_000]]
)
def test_what_cannot_be_an_argument_is_refused(argv: list[str]) -> None:
    with pytest.raises(Unquotable):
        command_line(argv)
