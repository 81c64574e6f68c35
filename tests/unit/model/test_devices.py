"""The processes of a training: how many there are, where they meet, and what is said of one that is gone."""

import builtins
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Pipe

import pytest
import torch

from r2n.errors import ConfigError, DataError, ProcessError
from r2n.model import processes
from r2n.model.processes import FabricTeam, Place, begun_elsewhere, follows_elsewhere, together
from r2n.options import TrainingOptions
from r2n.training.batches import SINGLE, ProcessGroup
from tests.ended_process import EndedProcess

BATCHES = TrainingOptions(batch_size=5, device="cpu")
OUTSIDE = ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "MASTER_PORT")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)


def nothing(*_: object) -> None:
    raise AssertionError("no process is to be begun")


@pytest.mark.parametrize("count", [None, 1])
def test_one_process_needs_nobody(count: int | None) -> None:
    with together(count, TrainingOptions(), nothing) as team:
        assert team is SINGLE


def test_what_cannot_be_shared_is_refused_before_any_process_begins() -> None:
    with pytest.raises(ConfigError, match=r"set training\.batch_size"), together(2, TrainingOptions(), nothing):
        pass


def test_without_fabric(monkeypatch: pytest.MonkeyPatch) -> None:
    import_any = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("lightning_fabric"):
            raise ImportError(name)
        return import_any(name, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install r2n\[distributed\]"), together(2, BATCHES, nothing):
        pass


@pytest.mark.parametrize(
    ("environment", "count", "follows"),
    [
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "4"}, 4, False),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "3", "WORLD_SIZE": "4"}, 4, True),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, 4, True),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None, False),
        ({}, None, False),
    ],
)
def test_processes_that_others_began(
    environment: dict[str, str], count: int | None, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert begun_elsewhere(4) == count
    assert follows_elsewhere(4) is follows
    if count is not None:
        with pytest.raises(ConfigError, match="began 4 processes, --devices says 2"):
            begun_elsewhere(2)
        with together(4, BATCHES, nothing) as team:
            assert (team.rank, team.count) == (processes._rank_elsewhere(), 4)


def test_slurm_is_heard_only_where_devices_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert begun_elsewhere(None) is None


def test_processes_of_one_machine_meet_on_loopback() -> None:
    given = Place(1, 2, 4711).environment
    assert given["MASTER_ADDR"] == "127.0.0.1"
    assert given["MASTER_PORT"] == "4711"
    assert given["LOCAL_RANK"] == "1"
    assert given["GLOO_SOCKET_IFNAME"] in ("lo", "lo0")
    with closing(processes._listening()) as made:
        assert made.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("MASTER_PORT", str(port))
        with (
            pytest.raises(
                ConfigError, match=rf"rank 0 cannot listen at 127\.0\.0\.1:{port}.*in use\n  set MASTER_PORT"
            ),
            together(2, BATCHES, nothing),
        ):
            pass
    monkeypatch.setenv("MASTER_PORT", "here")
    with pytest.raises(ConfigError, match="cannot listen at"):
        processes._listening()


class Broken:
    """A Fabric whose others are gone."""

    def all_reduce(self, values: torch.Tensor, *, reduce_op: str) -> torch.Tensor:
        raise RuntimeError("[/a/b.cc:1] Connection closed by peer\nand more")


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("", "do not reach each other: Connection closed by peer\n"),
        ("rank 1 was killed by signal 9", "rank 1 was killed"),
    ],
)
def test_an_exchange_with_who_is_gone(gone: str, message: str) -> None:
    team = FabricTeam(0, 2, Broken, lambda: gone)
    assert isinstance(team, ProcessGroup)
    with pytest.raises(ProcessError, match=rf"{message}(.|\n)*go on with --resume"):
        team.summed(torch.zeros(1))


@pytest.fixture
def pipe() -> Iterator[tuple]:
    here, there = Pipe(duplex=False)
    yield here, there
    here.close()
    there.close()


@pytest.mark.parametrize(
    ("code", "message"), [(-signal.SIGKILL, "rank 1 was killed by signal 9"), (0, "rank 1 ended early: a wrong row")]
)
def test_who_is_gone_and_what_it_said_last(code: int, message: str, pipe: tuple) -> None:
    here, there = pipe
    process = EndedProcess(code)
    there.send(DataError("a wrong row"))
    assert processes._who_is_gone([(process, here)]) == message


def test_one_that_fails_before_the_first_step(pipe: tuple) -> None:
    here, there = pipe
    process = EndedProcess(-signal.SIGKILL)
    there.send(DataError("a wrong row"))
    with pytest.raises(DataError, match="a wrong row"):
        processes._wait_for(1, 2, process, here)
    there.send("ready")
    processes._wait_for(1, 2, process, here)
    there.close()
    with pytest.raises(ProcessError, match="rank 1 was killed by signal 9, before the first step"):
        processes._wait_for(1, 2, process, here)


def refuses(_: ProcessGroup, kind: str) -> None:
    if kind == "told":
        raise DataError("a wrong row")
    raise RuntimeError("the machine is tired")


@pytest.mark.parametrize(("kind", "message"), [("told", "a wrong row"), ("other", "rank 1: the machine is tired")])
def test_what_another_process_fails_with_is_handed_over(
    kind: str, message: str, pipe: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # it is this process
    here, there = pipe
    processes._follow(Place(1, 2, 0), "cpu", there, refuses, (kind,))
    assert str(here.recv()) == message


def test_more_processes_than_a_machine_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "begin", nothing)
    with pytest.raises(ConfigError, match="processes cannot be begun"), together(10**30, BATCHES, nothing):
        pass
