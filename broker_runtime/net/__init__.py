"""Decides how inputs and effects meet the operating system: sockets, clocks, log files, processes."""
