"""Decides how fast it is: measurements that are run by hand and never fail a build."""
