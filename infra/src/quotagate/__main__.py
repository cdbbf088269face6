"""`quotagate`, or `python -m quotagate`: the operator's command."""

import sys

import structlog

from quotagate.cli import run


def main() -> None:
    """Run the command of the arguments and leave with its status."""
    # Standard output is the answer's alone.
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(file=sys.stderr))
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
