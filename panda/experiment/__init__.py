"""Experiments: decides what is kept of a run, and how a whole one goes from topology to logs."""
