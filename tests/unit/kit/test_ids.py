from kit.ids import new_id


def test_ids_are_unique_and_sort_by_time() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assert ids[0][14] == "7"
