"""Decides what may be said to a broker as its client, and what comes of it; knows no widget."""
