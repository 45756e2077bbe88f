"""Decides what a workload says and when; seeded, pure, without a clock: commands and benchmarks drive it."""
