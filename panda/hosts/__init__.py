"""How hosts are reached: over SSH or on this machine, their keys checked, the runtime in place.

Decides nothing about what runs on them.
"""
