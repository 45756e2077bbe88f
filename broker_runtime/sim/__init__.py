"""Decides what time it is and what goes wrong, for brokers that run in virtual time."""
