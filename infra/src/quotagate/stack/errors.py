"""What can go wrong with the local stack.

StackError
├── PortTakenError      a port that a variable names is in use by somebody else
├── NoBinaryError       a server's program isn't to be had on this machine
├── UnhealthyError      something didn't become healthy in time; the text has its last log lines
├── NotRunningError     the stack isn't up
└── BusyError           another command works on the same stack
"""


class StackError(Exception):
    """The local stack can't do this."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class PortTakenError(StackError):
    """A port that was asked for is in use."""


class NoBinaryError(StackError):
    """A server's program isn't to be had on this machine."""


class UnhealthyError(StackError):
    """Something didn't become healthy in time."""


class NotRunningError(StackError):
    """The stack isn't running; start it with: make up."""


class BusyError(StackError):
    """Another command is working on this stack."""
