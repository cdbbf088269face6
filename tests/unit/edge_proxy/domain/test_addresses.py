"""Whose request it is: no header of a client makes it another's."""

import ipaddress

import pytest

from edge_proxy.domain.addresses import ForwardingHeader, Proxies

NOWHERE = "0.0.0.0"  # noqa: S104 - nobody listens here

NETWORKS = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "2001:db8:ffff::/48"))
PROXIES = Proxies(NETWORKS)
FORWARDED = Proxies(NETWORKS, "forwarded")


def headers(*values: str, name: ForwardingHeader = "x-forwarded-for") -> list[tuple[bytes, bytes]]:
    return [(b"host", b"edge"), *((name.encode(), value.encode()) for value in values)]


@pytest.mark.parametrize(
    ("peer", "values", "client"),
    [
        pytest.param("10.0.0.1", ["203.0.113.7"], "203.0.113.7", id="one proxy"),
        pytest.param("10.0.0.1", ["203.0.113.7, 10.9.9.9"], "203.0.113.7", id="two proxies"),
        pytest.param("10.0.0.1", ["203.0.113.7", "10.9.9.9"], "203.0.113.7", id="two headers"),
        pytest.param("10.0.0.1", [], "10.0.0.1", id="the proxy itself"),
        pytest.param("203.0.113.7", ["198.51.100.1"], "203.0.113.7", id="no proxy: not believed"),
        pytest.param(
            "10.0.0.1", ["198.51.100.1, 203.0.113.7"], "203.0.113.7", id="a client that spoofs"
        ),
        pytest.param(
            "10.0.0.1", ["10.1.1.1, 203.0.113.7"], "203.0.113.7", id="spoofs a trusted one"
        ),
        pytest.param(
            "10.0.0.1", ["198.51.100.1, , 10.9.9.9"], "10.9.9.9", id="a gap: the last good one"
        ),
        pytest.param("10.0.0.1", ["unknown"], "10.0.0.1", id="garbage: the peer"),
        pytest.param(
            "10.0.0.1", ["198.51.100.1, x, 10.9.9.9"], "10.9.9.9", id="garbage in between"
        ),
        pytest.param("10.0.0.1", ["\xff\xfe"], "10.0.0.1", id="not even text"),
        pytest.param("10.0.0.1", ["10.2.2.2, 10.9.9.9"], "10.2.2.2", id="all are trusted"),
        pytest.param("10.0.0.1", ["203.0.113.7:4711"], "203.0.113.7", id="with a port"),
        pytest.param("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::/64", id="IPv6 with a port"),
        pytest.param("10.0.0.1", ["::ffff:203.0.113.7"], "203.0.113.7", id="IPv4 in IPv6"),
        pytest.param("::ffff:10.0.0.1", ["203.0.113.7"], "203.0.113.7", id="a proxy in IPv6"),
        pytest.param("2001:db8:ffff::1", ["203.0.113.7"], "203.0.113.7", id="an IPv6 proxy"),
        pytest.param("10.0.0.1", ["1" * 60_000], "10.0.0.1", id="longer than any address"),
        pytest.param("10.0.0.1", ["203.0.113.007"], "10.0.0.1", id="an octal number"),
    ],
)
def test_x_forwarded_for(peer: str, values: list[str], client: str) -> None:
    assert PROXIES.client_of(peer, headers(*values)) == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        pytest.param("for=203.0.113.7", "203.0.113.7", id="an address"),
        pytest.param("For=203.0.113.7;proto=https;by=10.0.0.2", "203.0.113.7", id="other pairs"),
        pytest.param('proto=http;for="[2001:db8::1]:4711"', "2001:db8::/64", id="quoted IPv6"),
        pytest.param("for=198.51.100.1, for=203.0.113.7", "203.0.113.7", id="a client spoofs"),
        pytest.param("for=203.0.113.7, for=10.9.9.9", "203.0.113.7", id="two proxies"),
        pytest.param("for=198.51.100.1, for=_hidden", "10.0.0.1", id="hidden: the last good one"),
        pytest.param("for=198.51.100.1, by=10.0.0.2", "10.0.0.1", id="an element without for"),
        pytest.param("before=198.51.100.1", "10.0.0.1", id="another pair that ends in for"),
    ],
)
def test_forwarded(value: str, client: str) -> None:
    assert FORWARDED.client_of("10.0.0.1", headers(value, name="forwarded")) == client


def test_only_the_header_that_was_configured_is_read() -> None:
    both = [*headers("203.0.113.7"), *headers("for=198.51.100.1", name="forwarded")]
    assert PROXIES.client_of("10.0.0.1", both) == "203.0.113.7"
    assert FORWARDED.client_of("10.0.0.1", both) == "198.51.100.1"
    assert Proxies().client_of("10.0.0.1", both) == "10.0.0.1"


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        pytest.param("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="IPv6 by its network"),
        pytest.param("2001:DB8:1:2::", "2001:db8:1:2::/64", id="in one way of writing"),
        pytest.param("fe80::1%eth0", "fe80::/64", id="with a zone"),
        pytest.param(None, NOWHERE, id="a peer without an address"),
        pytest.param("/run/edge.sock", NOWHERE, id="a socket's path"),
    ],
)
def test_a_peer(peer: str | None, client: str) -> None:
    assert Proxies().client_of(peer, []) == client


def test_connections_of_proxies_are_nobodys() -> None:
    assert PROXIES.peer_of("10.0.0.1") is None
    assert PROXIES.peer_of("203.0.113.7") == "203.0.113.7"
    assert PROXIES.peer_of("2001:db8::1") == "2001:db8::/64"
