"""Verify and doctor over the whole running system, with all that other tests left in it."""

from decimal import Decimal

from e2e.operator import MODEL, Operator
from openai.types.chat import ChatCompletionMessageParam

from fake_provider.behaviour import fake
from quotagate.doctor import examine
from quotagate.stack import Stack
from quotagate.stores import of_servers
from quotagate.verify import Options, verify

SAY_HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello."}]
REQUESTS = 20


async def test_the_books_of_a_running_system_are_proved(stack: Stack, operator: Operator) -> None:
    team = await operator.open_team(credit_usd="0.0001")
    async with team.openai() as client:
        for number in range(REQUESTS):
            await client.chat.completions.create(
                model=MODEL,
                messages=SAY_HELLO,
                metadata=fake(prompt_tokens=1 + number, completion_tokens=number % 3),
            )
    await operator.settled(team.team_id, REQUESTS)
    report = await verify(of_servers(stack.servers), Options())
    assert (report.findings, report.untold) == ([], [])
    assert int(report.figures["settled"]) >= REQUESTS
    assert int(report.figures["stream_records"]) >= REQUESTS
    assert int(report.figures["cached_balances"]) >= 1
    assert Decimal(str(report.figures["charged_usd"])) > 0


async def test_a_running_system_is_healthy(stack: Stack) -> None:
    diagnosis = await examine(of_servers(stack.servers))
    assert (diagnosis.flaws, diagnosis.untold) == ([], [])
