"""Decides how bytes travel between processes; the only room with sockets."""
