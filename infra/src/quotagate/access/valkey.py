"""The Valkey users: the services that judge and settle may run scripts on the teams' keys only."""

from collections.abc import Mapping

OPERATOR = "operator"
SERVICES = ("admission", "tier-cache", "settlement")

_KEYS = "~quota:*"

# What redis-py sends to open a connection, what the services check at start, and the scripts with
# the commands inside them, which the server judges by the same list.
_COMMANDS = (
    "hello auth ping select time info echo quit reset config|get "
    "client|setinfo client|setname client|id client|no-evict client|no-touch "
    "cluster|slots cluster|shards cluster|nodes cluster|keyslot command readonly "
    "eval evalsha evalsha_ro eval_ro script|load script|exists "
    "get set mget del unlink exists type ttl pttl pexpiretime scan "
    "incrby decrby expire pexpire pexpireat persist "
    "zcount zrange zscore zadd zrem zremrangebyscore"
)


def configuration(passwords: Mapping[str, str]) -> str:
    """Return the server's file of users; nobody connects without a password."""
    commands = " ".join(f"+{command}" for command in _COMMANDS.split())
    lines = [
        "user default reset off",
        f"user {OPERATOR} reset on >{passwords[OPERATOR]} ~* &* +@all",
        *(
            f"user {service} reset on >{passwords[service]} {_KEYS} resetchannels -@all {commands}"
            for service in SERVICES
        ),
    ]
    return "\n".join(lines) + "\n"
