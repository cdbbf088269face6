"""What a request orders from the provider: known usage, and now and then a mishap."""

import random
from dataclasses import dataclass, field

from contracts.usage import Usage
from fake_provider.behaviour import fake

MODELS = ("small", "large")
_LATENCY_MS = (0, 60)
_SLOW_MS = (200, 900)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One request to be."""

    marker: str
    model: str
    stream: bool
    usage: Usage | None
    """What the provider will report; None: nothing."""
    knobs: dict[str, object] = field(default_factory=dict)
    leaves_after_bytes: int | None = None
    """The client hangs up after so much of the stream."""
    broken: bool = False
    """The body is no JSON: it must be refused."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing goes wrong on purpose."""
        return self.usage is not None and self.leaves_after_bytes is None and not self.broken

    def body(self) -> dict[str, object]:
        """Return the request's body."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": "Storm?"}],
            "stream": self.stream,
            "metadata": fake(marker=self.marker, **self.knobs),
        }


class Orders:
    """The orders of one team. No two have the same tokens, so that an amount names its request."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[tuple[int, int, int]] = set()

    def next(self) -> Order:
        """Return another order."""
        rng = self._rng
        prompt, cached, completion = self._tokens()
        knobs: dict[str, object] = {
            "prompt_tokens": prompt,
            "cached_tokens": cached,
            "completion_tokens": completion,
            "chunk_count": rng.randint(1, 8),
            "latency_ms": rng.randint(*(_SLOW_MS if rng.random() < 0.08 else _LATENCY_MS)),
        }
        stream = rng.random() < 0.45
        usage: Usage | None = Usage(input=prompt - cached, cache_read=cached, output=completion)
        leaves_after_bytes = None
        broken = False
        fate = rng.random()
        if fate < 0.03:
            knobs |= {"status": rng.choice((500, 503, 429, 400, 401)), "retry_after_s": 1}
            usage = None
        elif fate < 0.05:
            knobs |= {"drop_after_chunks": 0, "reset": rng.random() < 0.5}
            usage = None
        elif fate < 0.07:
            knobs |= {"usage_shape": rng.choice(("absent", "null"))}
            usage = None
        elif fate < 0.075:
            knobs |= {"hang": True}
            usage = None
        elif fate < 0.11 and stream:
            knobs |= {"chunk_count": 30, "chunk_interval_ms": 15}
            leaves_after_bytes = rng.randint(0, 2_000)
        elif fate < 0.12:
            broken = True
        return Order(
            marker=f"{rng.getrandbits(128) | 1:032x}",
            model=rng.choice(MODELS),
            stream=stream,
            usage=usage,
            knobs=knobs,
            leaves_after_bytes=leaves_after_bytes,
            broken=broken,
        )

    def _tokens(self) -> tuple[int, int, int]:
        while True:
            prompt = self._rng.randint(1, 3_000)
            tokens = (prompt, self._rng.randint(0, prompt), self._rng.randint(1, 2_000))
            if tokens not in self._used:
                self._used.add(tokens)
                return tokens
