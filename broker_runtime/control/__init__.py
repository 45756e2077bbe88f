"""Decides what a broker tells of itself and what it does when told; all by publish/subscribe."""
