from tests.analysis.desk import desk

__all__ = ["desk"]
