"""`panda version`: which code this is."""

from panda.cli import printing


def version(as_json: printing.JsonOption = False) -> None:
    """Print the versions of PANDA and of Python.

    Example: panda version --json
    """
    import platform

    from broker_runtime import VERSION

    versions = {"panda": VERSION, "python": platform.python_version()}
    printing.result(
        versions, "\n".join(f"{name} {number}" for name, number in versions.items()), as_json=as_json
    )
