from tests.support.local_brokers import brokers

__all__ = ["brokers"]
