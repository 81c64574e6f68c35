"""Who may ask, the token, and the socket."""

from pathlib import Path

import pytest
from fastapi import FastAPI

from r2n.errors import ConfigError
from r2n.serving.app import ImpatientProtocol, access_to, address, listening, make_server, read_token
from r2n.serving.guards import LOOPBACK
from r2n.serving.session import Limits

TOKEN = "a-token-of-some-length"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.5"])
def test_a_loopback_needs_no_token_and_has_its_own_names(host: str) -> None:
    access = access_to(host, None, ["model.example"])
    assert access.token is None
    assert access.hosts == LOOPBACK | {host, "model.example"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "model.example"])
def test_any_other_host_demands_one(host: str, token_file: Path) -> None:
    with pytest.raises(ConfigError, match="there is no token"):
        access_to(host, None, [])
    assert access_to(host, token_file, []).token == TOKEN
    assert access_to(host, token_file, []).hosts is None
    names = access_to(host, token_file, ["Model.Example"]).hosts
    assert names is not None
    assert "model.example" in names


@pytest.mark.parametrize("text", ["", "short", "with a space in its middle", "ümläüts-are-no-ascii"])
def test_what_is_no_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="holds no token") as caught:
        read_token(path)
    assert text == "" or text not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "nothing")


def test_a_port_that_is_taken_is_told() -> None:
    with listening("127.0.0.1", 0) as first:
        host, port = first.getsockname()
        assert address(first) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1, port {port}"):
            listening(host, port)
    with pytest.raises(ConfigError, match=r"cannot listen at nowhere\.invalid"):
        listening("nowhere.invalid", 0)


def test_the_server_says_nothing_of_requests() -> None:
    config = make_server(FastAPI(), Limits(client_seconds=0.5)).config
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)
    assert isinstance(config.http, type)
    assert issubclass(config.http, ImpatientProtocol)
    assert config.http.seconds == 0.5
