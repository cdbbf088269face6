"""The routes file: what it says, and errors that name their path."""

import pytest

from edge_proxy.domain.adapters.openai_chunks import without_options
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS
from edge_proxy.domain.retries import NAMES, RetryPolicy
from edge_proxy.domain.routes import parse
from edge_proxy.domain.surroundings import Surroundings
from edge_proxy.errors import RoutesError

PROVIDER = '[providers.p]\nadapter = "openai"\nbase_url = "http://p/v1"\n'
MODEL = '[models.m]\ndeployments = [{ provider = "p", model = "x" }]\n'
SECRET = "the-key-itself"


def _read(name: str) -> str:
    if name == "/run/nothing":
        return ""
    if name != "/run/key":
        raise FileNotFoundError(name)
    return f"{SECRET}\n"


SURROUNDINGS = Surroundings(
    variables={"HOST": "h:1", "KEY": SECRET, "EMPTY": "", "BAD": "a b"}, read_file=_read
)


def test_what_it_says() -> None:
    routes = parse(
        """
        [providers.p]
        adapter = "openai"
        base_url = "https://${HOST}/v1/"
        api_key_env = "KEY"
        supports_stream_usage = false
        connect_s = 2
        timeouts = { idle_s = 7, total_s = 70 }
        [models."a/b"]
        deployments = [
            { provider = "p", model = "x", timeouts = { total_s = 80 } },
            { provider = "p", model = "y" },
        ]
        """,
        SURROUNDINGS,
    )
    first, second = routes.models["a/b"].targets
    assert first.provider.base_url == "https://h:1/v1"
    assert first.provider.api_key == SECRET
    chat = first.provider.adapter.apis[CHAT_COMPLETIONS.path]
    assert chat.outgoing is without_options
    assert first.provider.connect_s == 2
    assert (first.model, first.timeouts.idle_s, first.timeouts.total_s) == ("x", 7, 80)
    assert (second.model, second.timeouts.idle_s, second.timeouts.total_s) == ("y", 7, 70)
    assert SECRET not in repr(routes)


def test_time_outs_of_provider_model_and_deployment() -> None:
    routes = parse(
        """
        [providers.p]
        adapter = "openai"
        base_url = "http://p/v1"
        timeouts = { first_byte_s = 1, idle_s = 1, total_s = 1 }
        [models.m]
        timeouts = { idle_s = 2, total_s = 2 }
        deployments = [
            { provider = "p", model = "x", timeouts = { total_s = 3 } },
            { provider = "p", model = "y" },
        ]
        """,
        SURROUNDINGS,
    )
    first, second = (target.timeouts for target in routes.models["m"].targets)
    assert (first.first_byte_s, first.idle_s, first.total_s) == (1, 2, 3)
    assert (second.first_byte_s, second.idle_s, second.total_s) == (1, 2, 2)


def test_a_models_retries_overrule_the_files() -> None:
    routes = parse(
        "retry = { attempts = 2, on = [429], wait_s = 1 }\n"
        + PROVIDER
        + MODEL
        + 'retry = { on = ["unreachable", 503], fall_back_on = [] }\n'
        + MODEL.replace(".m", ".n"),
        SURROUNDINGS,
    )
    own, files = routes.models["m"].retry, routes.models["n"].retry
    assert (own.attempts, own.on, own.wait_s) == (2, frozenset({"unreachable", "503"}), 1)
    assert own.fall_back_on == frozenset()
    assert (files.attempts, files.on, files.wait_s) == (2, frozenset({"429"}), 1)
    assert files.fall_back_on == RetryPolicy().fall_back_on


def test_by_default_nothing_is_asked_twice_and_fallbacks_are_made() -> None:
    assert parse(PROVIDER + MODEL, SURROUNDINGS).models["m"].retry == RetryPolicy()
    assert RetryPolicy().attempts == 1
    assert {*NAMES, "408", "429", "503"} - RetryPolicy().fall_back_on == {"answer_too_large"}


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ('api_key_file = "/run/key"', SECRET),
        ('api_key_env = "KEY"', SECRET),
        ("", ""),
    ],
    ids=["file", "variable", "none"],
)
def test_keys(key: str, found: str) -> None:
    assert parse(PROVIDER + key + "\n" + MODEL, SURROUNDINGS).providers["p"].api_key == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[providers", "not TOML", id="not TOML"),
        pytest.param(MODEL, "providers: Field required", id="no providers"),
        pytest.param(PROVIDER + "colour = 1\n" + MODEL, "providers.p.colour", id="unknown key"),
        pytest.param(PROVIDER + 'api_key = "x"\n' + MODEL, "providers.p.api_key", id="a key"),
        pytest.param(PROVIDER + MODEL + "weight = 1\n", "models.m.weight", id="in a model"),
        pytest.param(
            PROVIDER + '[models.m]\ndeployments = [{ provider = "p", model = "x", x = 1 }]',
            "models.m.deployments.0.x",
            id="in a deployment",
        ),
        pytest.param(
            PROVIDER + "timeouts = { idle = 1 }\n" + MODEL, "providers.p.timeouts.idle", id="deep"
        ),
        pytest.param(
            PROVIDER + MODEL + "retry = { attempts = 0 }",
            "models.m.retry.attempts",
            id="no attempt",
        ),
        pytest.param(
            PROVIDER + MODEL + "retry = { attempts = 11 }", "models.m.retry.attempts", id="too many"
        ),
        pytest.param(
            PROVIDER + MODEL + 'retry = { on = ["rain"] }', "models.m.retry.on.0", id="no cause"
        ),
        pytest.param(
            PROVIDER + MODEL + "retry = { on = [200] }", "models.m.retry.on.0", id="no failure"
        ),
        pytest.param(
            "retry = { forever = true }\n" + PROVIDER + MODEL, "retry.forever", id="in retries"
        ),
        pytest.param(PROVIDER + "connect_s = 0\n" + MODEL, "providers.p.connect_s", id="zero"),
        pytest.param(PROVIDER + 'connect_s = "1"\n' + MODEL, "providers.p.connect_s", id="a text"),
        pytest.param(
            PROVIDER + "[models.m]\ndeployments = []\n", "models.m.deployments", id="no deployment"
        ),
        pytest.param(
            PROVIDER + '[models.m]\ndeployments = [{ provider = "q", model = "x" }]',
            "models.m.deployments.0.provider: there is no provider 'q'",
            id="no such provider",
        ),
        pytest.param(
            PROVIDER.replace("openai", "smoke") + MODEL, "providers.p.adapter", id="no adapter"
        ),
        pytest.param(
            PROVIDER.replace("http://p", "${NOWHERE}") + MODEL,
            "providers.p.base_url: the variable NOWHERE is not set",
            id="no such variable",
        ),
        pytest.param(
            PROVIDER + 'api_key_env = "EMPTY"\n' + MODEL,
            "providers.p.api_key_env: the variable EMPTY is not set",
            id="an empty variable",
        ),
        pytest.param(
            PROVIDER + 'api_key_env = "BAD"\n' + MODEL, "providers.p: the API key", id="a bad key"
        ),
        pytest.param(
            PROVIDER + 'api_key_file = "/nowhere"\n' + MODEL,
            "providers.p.api_key_file: FileNotFoundError",
            id="no such file",
        ),
        pytest.param(
            PROVIDER + 'ca_file = "/nowhere"\n' + MODEL,
            "providers.p.ca_file: FileNotFoundError",
            id="no such file of authorities",
        ),
        pytest.param(
            PROVIDER + 'ca_file = "/run/key"\n' + MODEL,
            "providers.p.ca_file: SSLError",
            id="a file without certificates",
        ),
        pytest.param(
            PROVIDER + 'ca_file = "/run/nothing"\n' + MODEL,
            "providers.p.ca_file: no certificate of an authority",
            id="an empty file of authorities",
        ),
        pytest.param(
            PROVIDER + 'api_key_file = "/run/key"\napi_key_env = "KEY"\n' + MODEL,
            "providers.p: api_key_env and api_key_file",
            id="two keys",
        ),
        *(
            pytest.param(
                PROVIDER.replace("http://p/v1", address) + MODEL, "providers.p.base_url", id=address
            )
            for address in ("ftp://p", "p:80", "http://", "http://p?x=1")
        ),
    ],
)
def test_wrong(text: str, said: str) -> None:
    with pytest.raises(RoutesError) as caught:
        parse(text, SURROUNDINGS)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
