from tests.support.local_brokers import brokers
from tests.support.processes import place

__all__ = ["brokers", "place"]
