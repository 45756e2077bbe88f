"""Deployments: decides how a plan becomes a running experiment, in two phases, and how it is steered."""
