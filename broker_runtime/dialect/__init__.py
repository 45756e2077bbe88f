"""The words of the start commands: decides what an argument list says; never opens, prints or exits."""
