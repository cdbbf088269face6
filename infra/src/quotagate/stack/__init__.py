"""The local stack: NATS, Valkey, Postgres and the services on one machine without Docker.

stack.py              the stack as a whole: up, stop, down
known.py              where things are, how they do, and single programs
layout.py             which programs there are, their commands and environment
preparation.py        configuration and folders of the servers
ports.py state.py     what is chosen once and remembered
postgres*.py          which Postgres, its cluster, the user it runs as (unprivileged.py)
programs.py           the supervisor's configuration; supervisor.py talks to it
processes.py          ends what a killed supervisor left behind
readiness.py          waits, and explains
"""

from quotagate.stack.layout import Servers
from quotagate.stack.ports import PortPolicy
from quotagate.stack.stack import Stack

__all__ = ["PortPolicy", "Servers", "Stack"]
