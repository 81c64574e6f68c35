"""The command line: r2n serve."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from r2n.cli.screen import RunArgument, progress
from r2n.errors import ConfigError

HostOption = Annotated[str, typer.Option(help="Where to listen; any other than a loopback needs a token.")]
PortOption = Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.")]
TokenOption = Annotated[Path | None, typer.Option(metavar="FILE", help="A file with the token that clients send.")]
NameOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Another name that clients know the server by, as a proxy's.")
]
WorkersOption = Annotated[int | None, typer.Option(min=1, max=64, help="Processes that answer.", show_default="cores")]
SecondsOption = Annotated[float, typer.Option(min=0.1, help="A request that takes longer is stopped.")]
ClientOption = Annotated[float, typer.Option(min=0.1, help="The time of a client to send a request.")]


def serve(
    run: RunArgument,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    token_file: TokenOption = None,
    public_name: NameOption = None,
    workers: WorkersOption = None,
    seconds: SecondsOption = 10.0,
    client_seconds: ClientOption = 20.0,
) -> None:
    """Serve a run: a page for people, and an API for programs."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise ConfigError("r2n serve needs more than r2n alone", hint="pip install 'r2n[serve]'")
    from r2n.serving.app import create_app
    from r2n.serving.keeper import Keeper
    from r2n.serving.limits import Limits
    from r2n.serving.server import access_to, address, listening, make_server

    access = access_to(host, token_file, public_name or [])
    limits = Limits(seconds=seconds, client_seconds=client_seconds)
    with listening(host, port) as own:
        with progress(str(run)) as shown:
            shown("read", 0, 0)
            keeper = Keeper.start(run, limits)
        try:
            server = make_server(create_app(keeper, access, workers or os.cpu_count() or 1), limits)
            typer.echo(f"{run} is served at {address(own)}; Ctrl-C ends it", err=True)
            server.run(sockets=[own])
        finally:
            keeper.close()
