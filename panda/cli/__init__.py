"""The command line: decides how a verb is spelled and what it prints; one file per verb."""
