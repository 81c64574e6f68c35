"""A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket and on loopback, gone at the end."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

PASSWORD = "no secret: this server lives for a test"
OWNER = "postgres"  # the server refuses to run as root


@dataclass(frozen=True)
class Server:
    """A running server: its programs, its folder, and how to reach it as its owner."""

    programs: Path
    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {"PGUSER": OWNER, "PGPASSWORD": PASSWORD}

    def url(self, database: str = "kg", *, loopback: bool = False) -> str:
        if loopback:
            return f"postgresql://127.0.0.1:{self.port}/{database}"
        return f"postgresql:///{database}?host={self.folder}&port={self.port}"

    def run(self, sql: str, database: str = "kg") -> str:
        command = [str(self.programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        command += ["-h", str(self.folder), "-p", str(self.port), "-d", database, "-c", sql]
        environment = os.environ | self.environment
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def stop(self) -> None:
        _as_owner([str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop"])


def programs() -> Path | None:
    """Where the newest server is installed; Debian keeps it out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    elsewhere = shutil.which("initdb")
    return found[-1].parent if found else Path(elsewhere).parent if elsewhere else None


@contextmanager
def running(where: Path) -> Iterator[Server]:
    folder = Path(mkdtemp(prefix="r2n-postgres-", dir="/tmp"))  # the path of a socket may not be long
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.getuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, OWNER)
    server = Server(where, folder, _free_port())
    data = str(folder / "data")
    try:
        _as_owner(
            [str(where / "initdb"), "-D", data, "-A", "scram-sha-256", "-U", OWNER, "--pwfile", str(secret), "-N"]
        )
        options = f"-k {folder} -p {server.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        _as_owner([str(where / "pg_ctl"), "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start"])
        try:
            server.run("CREATE DATABASE kg", "postgres")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _as_owner(command: Sequence[str]) -> None:
    first = ["runuser", "-u", OWNER, "--"] if os.getuid() == 0 else []
    done = subprocess.run([*first, *command], capture_output=True, text=True, cwd="/tmp", stdin=subprocess.DEVNULL)
    if done.returncode and "stop" not in command:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
