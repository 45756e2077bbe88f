"""Decides how the network of brokers looks in a terminal; only `view.py` knows Textual."""
