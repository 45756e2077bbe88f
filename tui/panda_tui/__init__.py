"""The console: decides how a running experiment is shown and steered; holds no logic of its own."""
