"""Decides who gets the console in a browser: whoever opens, once and here, the address that was printed.

The token in the address buys one cookie and is worthless after that. A request that comes by another name
than loopback (a page that has its name point here), from another origin, or without the cookie, is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from hmac import compare_digest
from typing import Final

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

LOOPBACK: Final = "127.0.0.1"
SESSIONS_MAX: Final = 8  # each is a console of its own
TOKEN_BYTES: Final = 24
HEARTBEAT_S: Final = 15.0
GOODBYE_S: Final = 5.0
REFUSED: Final = "Refused: open the address that panda console --web printed. It can be used once.\n"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console(AppService):
    """The process behind one browser window. It ends with it, willing or not."""

    async def stop(self) -> None:
        process = self._process
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(GOODBYE_S):
                await super().stop()
                if process is not None:
                    await process.wait()
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


class ConsoleServer(Server):
    def __init__(self, words: Sequence[str], listening: socket.socket) -> None:
        # -P: a file of the user's folder must not stand in for a module.
        command = "exec " + shlex.join([sys.executable, "-P", "-m", "panda_tui", *words])
        port = listening.getsockname()[1]
        super().__init__(command, LOOPBACK, port, title="PANDA", public_url=f"http://{LOOPBACK}:{port}")
        self._listening = listening
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._cookie = secrets.token_urlsafe(TOKEN_BYTES)
        self._sessions = 0

    @property
    def address(self) -> str:
        return f"{self.public_url}/?token={self._token}"

    def run(self) -> None:
        """Until somebody ends it."""
        web.run_app(self._make_app(), sock=self._listening, print=None)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Without the words of the original: the address has been told."""

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if self._sessions >= SESSIONS_MAX:
            raise web.HTTPServiceUnavailable(text=f"{SESSIONS_MAX} consoles are open here already\n")
        self._sessions += 1
        try:
            return await self._show_console(request)
        finally:
            self._sessions -= 1

    async def _show_console(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        await socket.prepare(request)

        async def close() -> None:
            await socket.close()

        console = Console(
            self.command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        try:
            width, height = (request.query.get(name, "") for name in ("width", "height"))
            await console.start(to_int(width, 80), to_int(height, 24))
            await self._process_messages(socket, console)
        finally:
            await console.stop()
        return socket

    @property
    def _name(self) -> str:
        return f"panda-console-{self.port}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._check_where_from(request)
        token = request.query.get("token")
        if token is not None and request.path == "/":
            return self._admit(token)
        if not compare_digest(request.cookies.get(self._name, "").encode(), self._cookie.encode()):
            raise web.HTTPForbidden(text=REFUSED)
        response = await handler(request)
        if not response.prepared:
            self._harden(response)
        return response

    def _check_where_from(self, request: web.Request) -> None:
        ours = f"{LOOPBACK}:{self.port}"
        origin = request.headers.get("Origin")
        if request.headers.get("Host") != ours:
            raise web.HTTPForbidden(text=REFUSED)
        if origin is not None and origin != f"http://{ours}":
            raise web.HTTPForbidden(text=REFUSED)
        if origin is None and request.path == "/ws":  # a browser says it for every socket
            raise web.HTTPForbidden(text=REFUSED)

    def _admit(self, token: str) -> web.Response:
        if not self._token or not compare_digest(token.encode(), self._token.encode()):
            raise web.HTTPForbidden(text=REFUSED)
        self._token = ""
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(self._name, self._cookie, httponly=True, samesite="Strict", path="/")
        self._harden(response)
        return response

    def _harden(self, response: web.StreamResponse) -> None:
        """Nothing is fetched from anywhere else, framed, kept, or told to whom a link leads."""
        here = f"'self' ws://{LOOPBACK}:{self.port}"
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self'; connect-src {here}; script-src 'self' 'unsafe-inline';"
            " style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"


def listen(port: int) -> socket.socket:
    """On loopback alone; OSError when the port is in use."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
