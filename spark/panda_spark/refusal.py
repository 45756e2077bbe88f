"""Decides what a refusal carries: what is wrong, and what would help."""

from __future__ import annotations


class Refused(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
