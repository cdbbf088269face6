"""Become another program whose sleeps may end later than asked, so that it wakes up less often.

    python timer_slack.py MICROSECONDS PROGRAM [ARGUMENT ...]

Linux only. What isn't allowed here (a sandbox may say so) is told and left: the program runs.
"""

import ctypes
import os
import sys

_PR_SET_TIMERSLACK = 29  # linux/prctl.h; kept across exec, inherited by threads


def before(slack_us: int) -> tuple[str, ...]:
    """Return what goes before a command; nothing where there is no such setting."""
    if sys.platform != "linux":
        return ()
    # -I, -S: nothing but the standard library, which is there in some milliseconds.
    return (sys.executable, "-I", "-S", __file__, str(slack_us))


def main() -> None:
    """Take the slack, then the program's place."""
    slack_us, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(int(slack_us) * 1_000)) != 0:
        sys.stderr.write(f"no timer slack: {os.strerror(ctypes.get_errno())}\n")
    os.execv(command[0], command)  # noqa: S606 - our own command, without a shell


if __name__ == "__main__":
    main()
