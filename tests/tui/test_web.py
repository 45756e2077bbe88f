"""The console in a browser: one address, used once, from this machine and this origin only."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType, WSServerHandshakeError
from aiohttp.web import AppRunner, SockSite

from panda_tui.web import SESSIONS_MAX, ConsoleServer, listen

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:aiohttp", "ignore:.*not_called:ResourceWarning"
)


@pytest.fixture
async def server() -> AsyncIterator[ConsoleServer]:
    made = ConsoleServer(["--runs", "nowhere"], listen(0))
    runner = AppRunner(await made._make_app())
    await runner.setup()
    await SockSite(runner, made._listening).start()
    yield made
    await runner.cleanup()


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:  # unsafe: cookies of an address
        yield session


async def test_the_address_opens_the_console_once(server: ConsoleServer, browser: ClientSession) -> None:
    address = server.address
    async with browser.get(address) as answer:
        assert answer.status == 200
        assert str(answer.url) == f"{server.public_url}/", "the token does not stay in the address"
        assert "token" not in await answer.text()
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    async with browser.get(server.public_url) as again:
        assert again.status == 200, "the cookie goes on"
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as other, other.get(address) as answer:
        assert answer.status == 403, "the token was used"


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=wrong", "/ws", "/static/js/textual.js", "/download/x"]
)
async def test_without_a_token_everything_is_refused(
    server: ConsoleServer, browser: ClientSession, path: str
) -> None:
    async with browser.get(f"{server.public_url}{path}", headers={"Origin": server.public_url}) as answer:
        assert answer.status == 403
        assert "panda console --web" in await answer.text()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Host": "evil.example"},
        {"Host": "localhost"},
    ],
)
async def test_other_origins_and_other_names_are_refused_though_they_have_the_cookie(
    server: ConsoleServer, browser: ClientSession, headers: dict[str, str]
) -> None:
    async with browser.get(server.address) as answer:
        assert answer.status == 200
    async with browser.get(server.public_url, headers=headers) as answer:
        assert answer.status == 403
    with pytest.raises(WSServerHandshakeError, match="403"):
        await browser.ws_connect(f"{server.public_url}/ws", headers={"Origin": server.public_url, **headers})


async def test_a_socket_says_where_it_comes_from(server: ConsoleServer, browser: ClientSession) -> None:
    async with browser.get(server.address):
        pass
    with pytest.raises(WSServerHandshakeError, match="403"):
        await browser.ws_connect(f"{server.public_url}/ws")


async def test_a_wrong_token_uses_up_nothing(server: ConsoleServer, browser: ClientSession) -> None:
    async with browser.get(f"{server.public_url}/?token=guess") as answer:
        assert answer.status == 403
    async with browser.get(server.address) as answer:
        assert answer.status == 200


async def test_the_socket_brings_a_console(server: ConsoleServer, browser: ClientSession) -> None:
    async with browser.get(server.address):
        pass
    origin = {"Origin": server.public_url}
    async with browser.ws_connect(f"{server.public_url}/ws?width=100&height=30", headers=origin) as socket:
        seen = b""
        while b"There are no runs" not in seen:
            message = await socket.receive(timeout=30)
            assert message.type in (WSMsgType.BINARY, WSMsgType.TEXT), message
            if message.type is WSMsgType.BINARY:
                seen += message.data


async def test_only_so_many_consoles_are_open_at_once(server: ConsoleServer, browser: ClientSession) -> None:
    async with browser.get(server.address):
        pass
    server._sessions = SESSIONS_MAX
    with pytest.raises(WSServerHandshakeError, match="503"):
        await browser.ws_connect(f"{server.public_url}/ws", headers={"Origin": server.public_url})


def test_it_listens_on_loopback_alone() -> None:
    listening = listen(0)
    with listening:
        assert listening.getsockname()[0] == "127.0.0.1"
