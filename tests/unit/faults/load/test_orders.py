from faults.load.orders import Orders
from faults.seeds import chance


def test_every_order_of_a_team_has_a_marker_and_tokens_of_its_own() -> None:
    orders = Orders(chance(1))
    made = [orders.next() for _ in range(2_000)]
    assert len({order.marker for order in made}) == len(made)
    tokens = [
        (
            order.knobs["prompt_tokens"],
            order.knobs["cached_tokens"],
            order.knobs["completion_tokens"],
        )
        for order in made
    ]
    assert len(set(tokens)) == len(made)


def test_the_usage_that_is_expected_is_the_one_that_is_ordered() -> None:
    orders = Orders(chance(2))
    for order in (orders.next() for _ in range(500)):
        if order.usage is not None:
            assert order.usage.input + order.usage.cache_read == order.knobs["prompt_tokens"]
            assert order.usage.output == order.knobs["completion_tokens"]
