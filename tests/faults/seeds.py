"""Chance that can be repeated."""

import random


def chance(seed: object) -> random.Random:
    """Return a generator that draws the same for the same seed."""
    return random.Random(str(seed))  # noqa: S311 - repeatable on purpose, no secret
