"""Decides which of a failing seed's troubles matter: takes them away one by one while the failure stays."""

from __future__ import annotations

from dataclasses import fields, replace

from broker_runtime.routing.forwarding import Covering
from broker_runtime.sim.execution import execute
from broker_runtime.sim.options import Options, drawn


def shrink(seed: int) -> dict[str, object] | None:
    """Options to override, so that the seed fails in the same checker with less going on; None: it passes."""
    problems = execute(seed).problems
    if not problems:
        return None
    checker = problems[0].partition(":")[0]
    options = drawn(seed)
    peaceful = Options()
    overrides: dict[str, object] = {}
    candidates: list[tuple[str, object]] = [("rounds", 1), ("clients", 2), ("brokers", 2), ("brokers", 3)]
    candidates += [("actions", count) for count in (5, 10, 15, 20, 30) if count < options.actions]
    candidates += [(each.name, getattr(peaceful, each.name)) for each in fields(Options)]
    for name, value in candidates:
        if name in overrides or getattr(options, name) == value:
            continue
        quieter = replace(options, **{name: value})  # type: ignore[arg-type]
        if any(problem.startswith(checker) for problem in execute(seed, quieter).problems):
            options = quieter
            overrides[name] = value
    return overrides


def written(overrides: dict[str, object]) -> list[str]:
    return [f"{name}={_plain(value)}" for name, value in overrides.items()]


def overridden(options: Options, settings: list[str]) -> Options:
    """The options with `name=value` settings applied; ValueError when there is no such option."""
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in Options.__dataclass_fields__:
            raise ValueError(f"there is no option {name!r}")
        now = getattr(options, name)
        value: object = text
        if isinstance(now, Covering):
            value = Covering(text)
        elif isinstance(now, bool):
            value = text == "True"
        elif isinstance(now, int | float):
            value = type(now)(text)
        options = replace(options, **{name: value})  # type: ignore[arg-type]
    return options


def _plain(value: object) -> object:
    return value.value if isinstance(value, Covering) else value
