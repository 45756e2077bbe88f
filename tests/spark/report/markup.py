"""A page as a browser's parser sees it, without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

Tag = tuple[str, dict[str, str | None]]


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(path: Path) -> list[Tag]:
    seen = _Seen()
    seen.feed(path.read_text(encoding="utf-8"))
    return seen.tags


def assert_inert(path: Path) -> None:
    """No element, handler or script but our own: two scripts, and data that is not run."""
    seen = tags(path)
    assert "img" not in {tag for tag, _ in seen}
    for tag, attributes in seen:
        assert not [name for name in attributes if name.startswith("on")], tag
    running = [attributes for tag, attributes in seen if tag == "script" and "type" not in attributes]
    assert len(running) == 2
