"""`quotagate`, or `python -m quotagate`: the operator's command."""

import sys

from quotagate.cli import run


def main() -> None:
    """Run the command of the arguments and leave with its status."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
