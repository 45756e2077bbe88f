"""Decides where the figures of a report are drawn: in a process beside, which gets ready while Spark works.

What draws them is JavaScript. It takes half a second to start, and as long as it draws nothing else runs in
its process. Run as a file this is that process: a specification on each line of stdin, a picture on each
of stdout. It ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import IO, Any, Self

# Has a bit of all that figures have, so that what draws them has done everything once.
FIRST: dict[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "width": 300,
    "height": 100,
    "autosize": {"type": "fit", "contains": "padding"},
    "data": {
        "values": [{"x": 1, "y": 1, "of": "a"}, {"x": 2, "y": 10, "of": "a"}, {"x": 3, "y": 5, "of": "b"}]
    },
    "encoding": {
        "x": {"field": "x", "type": "quantitative", "axis": {"labelExpr": "format(datum.value, '~r')"}},
        "color": {"field": "of", "type": "nominal"},
    },
    "layer": [
        {"mark": mark, "encoding": {"y": {"field": "y", "type": "quantitative", "scale": {"type": "log"}}}}
        for mark in ("line", "point", "rule")
    ],
}


class Press:
    """The process that draws. Leaving it ends it."""

    def __init__(self) -> None:
        # As a file: the package that it is in would take longer to import than all that this needs.
        self._popen = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def draw(self, specs: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Pictures of the specifications, each as soon as it is there."""
        lines = [json.dumps(spec, allow_nan=False).encode() for spec in specs]
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        # Both ends write much and would wait for each other.
        feeding = threading.Thread(target=_feed, args=(self._popen.stdin, lines), daemon=True)
        feeding.start()
        for _ in lines:
            line = self._popen.stdout.readline()
            if not line:
                raise RuntimeError("the process that draws figures ended before it had drawn them")
            yield json.loads(line)
        feeding.join()


def _feed(pipe: IO[bytes], lines: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):  # whoever reads finds out
        for line in lines:
            pipe.write(line + b"\n")
        pipe.flush()


def _serve(wanted: IO[bytes], drawn: IO[bytes]) -> None:
    import vl_convert

    vl_convert.vegalite_to_svg(FIRST)
    for line in wanted:
        svg = vl_convert.vegalite_to_svg(line.decode(), allowed_base_urls=[])
        drawn.write(json.dumps(svg).encode() + b"\n")
        drawn.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
