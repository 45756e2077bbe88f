"""Words become text that a POSIX shell reads back as the very same words; the only place that quotes.

sshd hands a command to the login shell as one text: whatever a word holds, the shell must pass it on.
That shell must be a POSIX one; csh and fish read some quoted words differently.
"""

import shlex
from collections.abc import Sequence

COMMAND_BYTES_MAX = 128 * 1024


class Unquotable(ValueError):
    """A word that cannot be an argument of a program."""


def quote(word: str) -> str:
    if "\0" in word:
        raise Unquotable(f"an argument holds a NUL character: {word!r}")
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        raise Unquotable(f"an argument is not text that UTF-8 can carry: {word!r}") from None
    return shlex.quote(word)


def command_line(argv: Sequence[str]) -> str:
    """One line for a shell, which becomes the program: `exec` knows no keyword, builtin or assignment."""
    if not argv:
        raise Unquotable("a command without a program")
    if not argv[0] or argv[0].startswith("-"):
        raise Unquotable(f"not the name of a program: {argv[0]!r}")
    line = "exec " + " ".join(quote(word) for word in argv)
    if len(line.encode()) > COMMAND_BYTES_MAX:
        raise Unquotable(f"a command of more than {COMMAND_BYTES_MAX} bytes: {line[:60]!r}...")
    return line
