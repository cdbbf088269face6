"""What Redis says of itself that no test server can be brought to say."""

import pytest

from quotagate.doctor.cache import _cluster_flaws, _info_flaws

WELL = {"redis_version": "7.2.4", "role": "master", "maxmemory": 0, "used_memory": 5}

CASES = [
    pytest.param({}, [], id="well"),
    pytest.param(
        {"redis_version": "6.2.0"}, ["redis: version 6.2.0 is below 7"], id="an old server"
    ),
    pytest.param({"role": "slave"}, ["redis: this is a replica"], id="a replica"),
    pytest.param(
        {"aof_last_write_status": "err"},
        ["redis: the last write of the append-only file failed"],
        id="a full disk",
    ),
    pytest.param(
        {"maxmemory": 10**9, "used_memory": 9 * 10**8},
        ["redis: 90% of maxmemory is used"],
        id="nearly full",
    ),
    pytest.param({"maxmemory": 10**9, "used_memory": 10**8}, [], id="room enough"),
]


@pytest.mark.parametrize(("changes", "words"), CASES)
def test_a_server_s_word_is_judged(changes: dict[str, object], words: list[str]) -> None:
    assert [flaw.what for flaw in _info_flaws(WELL | changes)] == words


@pytest.mark.parametrize(
    ("enabled", "clustered", "count"),
    [(1, True, 0), (0, False, 0), (1, False, 1), (0, True, 1)],
    ids=["cluster", "single", "cluster untold", "single taken for a cluster"],
)
def test_the_client_knows_whether_it_is_a_cluster(
    enabled: int, clustered: bool, count: int
) -> None:
    assert len(_cluster_flaws({"cluster_enabled": enabled}, clustered=clustered)) == count
