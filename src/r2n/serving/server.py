"""Start-up of the server: the preloaded run, the token, the socket, and uvicorn with a time limit on slow clients."""

import asyncio
import gc
import ipaddress
import socket
from pathlib import Path
from typing import Any

import h11
import torch
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from r2n.errors import ConfigError
from r2n.serving.guards import LOOPBACK, Access
from r2n.serving.requests import Limits
from r2n.serving.session import Session

LONGEST_HEAD = 2**18  # bytes: the address may hold a name of 10,000 characters of any script
FEWEST_CHARACTERS = 16
BACKLOG = 2_048


def preload(folder: Path, limits: Limits) -> Session:
    """Load the run in a folder, to be shared by forks of this process."""
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    session = Session.load(folder, limits)
    gc.collect()
    gc.freeze()  # what is never collected is never copied
    return session


def access_to(host: str, token_file: Path | None, public_names: list[str]) -> Access:
    """Who may ask a server that listens at `host`: anybody at a loopback, else clients with the token."""
    token = None if token_file is None else read_token(token_file)
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and token is None:
        hint = "give a file with a token of your own: --token-file FILE; or listen at 127.0.0.1"
        raise ConfigError(f"at {host} others can reach the server, and there is no token", hint=hint)
    if not is_loopback and not public_names:
        return Access(token, None)
    return Access(token, LOOPBACK | {host.lower()} | {name.lower() for name in public_names})


def read_token(path: Path) -> str:
    """The token in a file; one that could be guessed is an error."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token in {path} cannot be read: {error}") from error
    if len(token) < FEWEST_CHARACTERS or not token.isascii() or any(character.isspace() for character in token):
        hint = f"python -c 'import secrets; print(secrets.token_urlsafe())' > {path}"
        raise ConfigError(f"{path} holds no token: one of {FEWEST_CHARACTERS} characters or more is needed", hint=hint)
    return token


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose request does not begin, or whose head does not end, in time."""

    seconds = Limits().client_seconds
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop the clock once the head of a request is complete."""
        super().data_received(data)
        self._wait(is_over=self.conn.their_state is not h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._wait(is_over=True)
        super().connection_lost(exc)

    def _wait(self, *, is_over: bool = False) -> None:
        if is_over and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif not is_over and self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks nothing more, even if its client does not read what was sent."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.seconds, self.transport.abort)


def listening(host: str, port: int) -> socket.socket:
    """A listening socket."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        what = f"the server cannot listen at {host}, port {port}: {getattr(error, 'strerror', None) or error}"
        raise ConfigError(what, hint="give another --port") from error


def address(own: socket.socket) -> str:
    """The address for a browser."""
    host, port = own.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def make_server(app: FastAPI, limits: Limits) -> uvicorn.Server:
    """The server of an app; it logs no requests."""
    protocol = type("Protocol", (ImpatientProtocol,), {"seconds": limits.client_seconds})
    limited: dict[str, Any] = {
        "limit_concurrency": limits.connections,
        "h11_max_incomplete_event_size": LONGEST_HEAD,
        "timeout_keep_alive": max(1, int(limits.client_seconds)),
        "timeout_graceful_shutdown": max(1, int(limits.seconds)),
    }
    silent: dict[str, Any] = {"access_log": False, "log_level": "warning", "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", proxy_headers=False, **limited, **silent))
