"""The analysis: decides what the logs of a run say; knows the log format and none of our other packages."""
