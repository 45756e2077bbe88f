from tests.deployment.panda import panda
from tests.testbed.fixture import bed

__all__ = ["bed", "panda"]
