"""Decides where messages go: overlay, advertisements (SRT), subscriptions (PRT), covering."""
