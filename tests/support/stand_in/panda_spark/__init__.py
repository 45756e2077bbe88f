"""Stands in for the analysis where its door is tested and not its figures: found first by PYTHONPATH."""
