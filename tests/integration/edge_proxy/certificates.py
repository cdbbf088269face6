"""Certificates of a test's own authorities, made by the `openssl` command."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, each a file."""

    pem: Path
    key: Path


class Authority:
    """Vouches for whom it is asked to."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.certificate = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl(
            *("req", "-x509", *_KEY, "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", self.certificate.key, "-out", self.certificate.pem),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )

    def vouch(self, name: str, alternative: str, *, days: int = 1) -> Certificate:
        """Certify a server's name, as `DNS:…` or `IP:…`; `days` below 0: it was valid once."""
        made = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(
            f"subjectAltName={alternative}\nbasicConstraints=CA:FALSE\n"
            "extendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n",
            encoding="utf-8",
        )
        _openssl(
            *("req", "-new", *_KEY, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
        )
        _openssl(
            *("x509", "-req", "-in", request, "-out", made.pem, "-days", str(days)),
            *("-CA", self.certificate.pem, "-CAkey", self.certificate.key, "-CAcreateserial"),
            *("-extfile", extensions),
        )
        return made


def _openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - nothing from outside
