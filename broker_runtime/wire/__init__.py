"""Decides how frames and records look as bytes; never who sends them or why."""
