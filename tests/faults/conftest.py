from tests.support.line import lines
from tests.support.local_brokers import brokers
from tests.support.processes import processes

__all__ = ["brokers", "lines", "processes"]
