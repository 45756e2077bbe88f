"""Real hosts for tests and for trying things: sshd in namespaces of its own, taken down whatever happens."""
