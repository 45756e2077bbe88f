"""Decides how a figure becomes a picture and where the scripts come from; no browser and no network."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import vl_convert

from panda_spark.report.figure import Figure, Spec
from panda_spark.report.palette import themed_svg

PNG_SCALE = 2.0

Draw = Callable[[Iterable[Spec]], Iterator[str]]  # specifications of Vega-Lite to SVG, in their order


def here(specs: Iterable[Spec]) -> Iterator[str]:
    """The pictures of specifications, drawn by this process."""
    for spec in specs:
        yield vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def on_page(figure: Figure, svg: str) -> str:
    """The picture as it stands in the page, whose colours are the page's."""
    # Without an id in them many pictures can stand in one page; clipping, which needs some, is the script's.
    assert "<defs" not in svg, f"the figure {figure.name} defines something by an id"
    return themed_svg(svg)


def png(svg: str) -> bytes:
    return vl_convert.svg_to_png(svg, scale=PNG_SCALE)


@functools.cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script. Putting it together takes seconds, so it is kept."""
    kept = _cache() / f"vega-of-vl-convert-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        script = kept.read_text(encoding="utf-8")
        if script.endswith(_END):
            return script
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;") + _END
    assert "</script" not in script.lower(), "the bundle would end its own element"
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace(kept, script.encode())
    return script


_END = "\n// end of the bundle\n"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "padres-panda"


def replace(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or as it was before."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
