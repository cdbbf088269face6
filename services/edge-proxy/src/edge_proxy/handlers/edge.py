"""What a request's handler works with, once it is open."""

from dataclasses import dataclass

from edge_proxy.clients.admission import AdmissionClient
from edge_proxy.clients.hand_off import HandOff
from edge_proxy.clients.keys import KeyDirectory
from edge_proxy.clients.provider import ProviderClient
from edge_proxy.domain.addresses import Proxies
from edge_proxy.domain.policies import NO_POLICY, EndpointPolicy, Policies
from edge_proxy.domain.routes import Routes
from edge_proxy.handlers.accounting import Accounting
from edge_proxy.handlers.in_flight import InFlight
from edge_proxy.settings import Settings
from edge_proxy.store.idempotency import IdempotencyStore
from edge_proxy.store.stored_responses import StoredResponses
from kit.clock import Clock
from kit.paces import Paces


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Everything wired, for as long as the service is open."""

    settings: Settings
    routes: Routes
    clock: Clock
    keys: KeyDirectory
    admission: AdmissionClient
    providers: ProviderClient
    hand_off: HandOff
    accounting: Accounting
    in_flight: InFlight
    idempotency: IdempotencyStore
    stored_responses: StoredResponses
    policies: Policies
    proxies: Proxies
    failures: Paces | None
    """Failed authentications by address; None: they are not limited."""

    def policy_at(self, endpoint: str) -> EndpointPolicy:
        """Return what policies say of an endpoint, a method and a path."""
        return self.policies.get(endpoint, NO_POLICY)


@dataclass(slots=True)
class Gate:
    """Whether requests can be taken; the routes exist before the clients are open."""

    edge: Edge | None = None
    """None while starting and stopping."""
