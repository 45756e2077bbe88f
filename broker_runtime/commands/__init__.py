"""Decides how the runtime is started from a command line: `python -m broker_runtime WORD …`."""
