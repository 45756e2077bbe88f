"""The toolkit on the controller: decides what an experiment is and how it runs; never routes a message."""
