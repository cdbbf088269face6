"""Whose request is it, by address: the peer, or whom a trusted proxy says it came from.

A forwarding header is written by whoever sends it. Only what a trusted proxy added can be believed,
and that is on the right: so the hops are read from there, trusted ones are skipped, and the first
other one is the client. What can't be read ends the search: the last good address stands.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from edge_proxy.domain.headers import RawHeaders

ForwardingHeader = Literal["x-forwarded-for", "forwarded"]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IPv6 hands out networks of this size, so that a client has as many addresses as it likes.
_IPV6_PREFIX = 64
_NOWHERE = "0.0.0.0"  # noqa: S104 - nobody listens here: it stands for a peer without an address
_REMEMBERED = 4096
# An IPv6 address with a zone and a port; nothing longer is an address.
_MAX_CHARS = 100
# `for=192.0.2.1`, `for="[2001:db8::1]:4711"`, among other pairs of one element.
_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*"?([^";]*)"?\s*(?:;|$)', re.IGNORECASE)
_WITH_PORT = re.compile(r"^(?:\[(?P<v6>[^\]]*)\](?::\d+)?|(?P<v4>\d+\.\d+\.\d+\.\d+):\d+)$")


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies whose word is taken, and the header in which they write it."""

    networks: tuple[Network, ...] = ()
    header: ForwardingHeader = "x-forwarded-for"

    def peer_of(self, peer: str) -> str | None:
        """Return the address that a connection counts for; None: a proxy's is of many clients."""
        address = _parsed(peer)
        return None if address is None or self._has(address) else _limited_as(address)

    def client_of(self, peer: str | None, headers: RawHeaders) -> str:
        """Return the address that limits count a request by: IPv4 as it is, IPv6 as its /64.

        A peer without an address counts as 0.0.0.0.
        """
        address = None if peer is None else _parsed(peer)
        if address is None:
            return _NOWHERE
        if not self.networks or not self._has(address):
            return _limited_as(address)
        name = self.header.encode("ascii")
        for text in self._hops(value for found, value in headers if found == name):
            hop = _parsed(text)
            if hop is None:
                break
            address = hop
            if not self._has(hop):
                break
        return _limited_as(address)

    def _hops(self, values: Iterable[bytes]) -> Iterator[str]:
        """Return what the header says, the nearest proxy's word first; "" is no address."""
        elements = b",".join(values).decode("latin-1").split(",")
        for element in reversed(elements):
            if self.header == "forwarded":
                found = _FOR.search(element)
                yield "" if found is None else found[1].strip()
            else:
                yield element.strip()

    def _has(self, address: _Address) -> bool:
        return any(address in network for network in self.networks)


def _parsed(text: str) -> _Address | None:
    # Whatever a client writes is not to fill the memory of addresses.
    return _remembered(text) if len(text) <= _MAX_CHARS else None


@lru_cache(maxsize=_REMEMBERED)
def _remembered(text: str) -> _Address | None:
    with_port = _WITH_PORT.fullmatch(text)
    if with_port is not None:
        text = with_port["v6"] or with_port["v4"] or ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


@lru_cache(maxsize=_REMEMBERED)
def _limited_as(address: _Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    host_bits = address.max_prefixlen - _IPV6_PREFIX
    network = ipaddress.IPv6Address(int(address) >> host_bits << host_bits)
    return f"{network}/{_IPV6_PREFIX}"
