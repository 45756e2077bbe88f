"""Everything that runs on a host: brokers, clients, and the simulator that proves them."""

VERSION = "0.1.0"
