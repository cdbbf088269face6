"""What the stack remembers between commands: its mark, ports, passwords and where Postgres lives.

One file of mode 0600 in the stack's folder. It holds every secret of the stack.
"""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from quotagate.stack.errors import StackError

FILE = "state.json"

NATS_USERS = (
    "operator",
    "edge-proxy",
    "admission",
    "tier-cache",
    "settlement",
    "control-plane",
)
VALKEY_USERS = ("operator", "admission", "tier-cache", "settlement")
DATABASE_ROLES = (
    "postgres",
    "quotagate",
    "quotagate_tier_cache",
    "quotagate_settlement",
    "quotagate_control_plane",
)


def _new_password() -> str:
    # The letter in front keeps the NATS configuration from reading a number.
    return f"q{secrets.token_hex(20)}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Every secret of one stack, made once by :meth:`generate`."""

    nats: dict[str, str]
    valkey: dict[str, str]
    database: dict[str, str]
    admin_token: str
    key_pepper: str
    supervisor: str

    @classmethod
    def generate(cls) -> "Credentials":
        """Return new random secrets."""
        return cls(
            nats={user: _new_password() for user in NATS_USERS},
            valkey={user: _new_password() for user in VALKEY_USERS},
            database={role: _new_password() for role in DATABASE_ROLES},
            admin_token=f"admin_{secrets.token_urlsafe(32)}",
            key_pepper=secrets.token_hex(32),
            supervisor=_new_password(),
        )


@dataclass(frozen=True, slots=True)
class State:
    """One stack. `mark` is in the environment of each of its processes, to tell them apart."""

    mark: str
    credentials: Credentials
    ports: dict[str, int] = field(default_factory=dict)
    postgres_home: str | None = None
    """Where the cluster lies; None: not made yet. Outside the stack's folder where its user can't
    enter that."""

    @classmethod
    def new(cls) -> "State":
        """Return the state of a stack that has never run."""
        return cls(mark=secrets.token_hex(16), credentials=Credentials.generate())


def load(directory: Path) -> State | None:
    """Read the state; None: there is no stack in this folder.

    Raises:
        StackError: the file is damaged.

    """
    try:
        text = (directory / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        return State(**{**fields, "credentials": Credentials(**fields["credentials"])})
    except (ValueError, TypeError, KeyError) as error:
        raise StackError(f"{directory / FILE} is damaged: {error}") from error


def save(directory: Path, state: State) -> None:
    """Write the state in one step: a reader sees the old one or the new one."""
    write_private(directory / FILE, json.dumps(asdict(state), indent=2))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step."""
    draft = path.with_name(f"{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
