"""Decides how two ends talk without loss or repetition; never what their messages mean."""
