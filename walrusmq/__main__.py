"""``python -m walrusmq``: the same as the command ``walrusmq``."""

import sys

from walrusmq.cli import main

if __name__ == "__main__":
    sys.exit(main())
