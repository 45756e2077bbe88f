"""`python -m broker_runtime WORD …`: see `commands`."""

import sys

from broker_runtime.commands.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
