"""Decides what happens to the processes of a run on one host: see docs/agent-protocol.md.

Standard library only, because it runs before anything else is there.
"""
