"""Topologies: decides what an experiment's description says and if it makes sense; never reaches a host."""
