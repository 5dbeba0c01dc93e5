"""`python -m trainhall` is the command `trainhall`."""

import sys

from trainhall.cli import main

if __name__ == "__main__":
    sys.exit(main())
