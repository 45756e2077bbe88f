from tests.support.processes import processes

__all__ = ["processes"]
