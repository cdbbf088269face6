"""What a routes file refers to: variables of the environment, and files with secrets."""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edge_proxy.errors import RoutesError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Answers for `where`, a path in the routes file; every method raises RoutesError naming it."""

    variables: Mapping[str, str]
    read_file: Callable[[str], str]
    """Returns the content of a file, or raises OSError."""

    def expand(self, text: str, where: str) -> str:
        """Return a text with each `${NAME}` replaced by that variable."""
        return _VARIABLE.sub(lambda match: self._variable(match[1], where), text)

    def api_key(self, variable: str | None, file: str | None, where: str) -> str:
        """Return a provider's key out of a variable or a file; empty where neither is named."""
        if variable is not None and file is not None:
            raise RoutesError(f"{where}: api_key_env and api_key_file exclude each other")
        if variable is not None:
            key = self._variable(variable, f"{where}.api_key_env")
        elif file is not None:
            key = self._content(file, f"{where}.api_key_file")
        else:
            return ""
        key = key.strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise RoutesError(f"{where}: the API key has characters that no header can carry")
        return key

    def authorities(self, file: str | None, where: str) -> str | None:
        """Return the certificates in a file, PEM; None where none is named."""
        if file is None:
            return None
        pem = self._content(file, where)
        try:
            # Without a certificate in it the context would trust what the machine trusts.
            count = len(ssl.create_default_context(cadata=pem).get_ca_certs()) if pem else 0
        except (ssl.SSLError, ValueError) as error:
            raise RoutesError(f"{where}: {type(error).__name__}") from None
        if not count:
            raise RoutesError(f"{where}: no certificate of an authority is in it")
        return pem

    def _content(self, file: str, where: str) -> str:
        try:
            return self.read_file(file)
        except (OSError, UnicodeDecodeError) as error:
            raise RoutesError(f"{where}: {type(error).__name__}") from None

    def _variable(self, name: str, where: str) -> str:
        value = self.variables.get(name)
        if not value:
            raise RoutesError(f"{where}: the variable {name} is not set")
        return value
