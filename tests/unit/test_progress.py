"""Progress: phases in lines or as a bar, and none that nobody asked for; names that would steer a terminal."""

import io
import sys
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from r2n import progress as module
from r2n.cli import app
from r2n.cli.screen import print_table, screen
from r2n.errors import DataError
from r2n.progress import Phase, PhaseProgress, Progress, no_progress, progress
from r2n.visible import visible


def test_no_progress_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silent: Progress = no_progress
    silent("ground", 1, 2)
    assert capsys.readouterr() == ("", "")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_lines_tell_phases_in_their_order(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    shown = PhaseProgress(clock=clock)
    found: Progress = shown
    found("read", 0, 0)
    clock.now += 1
    found("ground", 0, 0)
    for done in (1, 2, 3):
        clock.now += 4
        found("ground", done, 3)
    found("train", 0, 0)
    for epoch in range(1, 121):
        clock.now += 0.1
        shown.detail(loss=f"{1 / epoch:.4f}")
        if epoch == 10:
            shown.detail(valid="0.93")
        found("train", epoch, 300)
    shown.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "read ...",
        "ground ...",
        "ground 2/3, 8 s, about 4 s left",
        "ground: done after 12 s",
        "train ...",
        "train 50/300, loss 0.0200, valid 0.93, 5 s, about 25 s left",
        "train 100/300, loss 0.0100, valid 0.93, 10 s, about 20 s left",
        "train: done after 12 s",
    ]


def test_a_phase_that_counts_nothing_is_announced_and_goes_on(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    shown = PhaseProgress(clock=clock)
    shown.look()
    shown.detail(loss="of no phase")
    shown("collate", 0, 0)
    assert capsys.readouterr().err == "collate ...\n"
    for _ in range(14):
        clock.now += 0.5
        shown.look()
    assert capsys.readouterr().err == "collate 5 s\n"
    shown("collate", 1_234, 0)
    clock.now += 3600
    shown.look()
    assert capsys.readouterr().err == "collate 1,234, 1 h 0 min\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (185.0, "3 min 5 s"), (7_500.0, "2 h 5 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert str(Phase("train", seconds=seconds)) == text


def test_work_that_is_taken_up_again_is_not_counted_twice() -> None:
    clock = Clock()
    shown = PhaseProgress(clock=clock)
    shown("train", 200, 300)
    for epoch in range(201, 221):
        clock.now += 1
        shown("train", epoch, 300)
    assert shown.phase is not None
    assert shown.phase.rate == pytest.approx(1.0)
    assert str(shown.phase) == "220/300, 20 s, about 1 min 20 s left"


def test_a_bar_on_a_terminal_from_the_third_second_on(clock: Clock) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, legacy_windows=False)
    shown = PhaseProgress("[/] towns", console, clock)
    assert shown.bar is not None
    shown("train", 0, 300)
    clock.now += 1.5
    shown("train", 15, 300)
    shown.bar.refresh()
    assert "train" not in file.getvalue()
    clock.now += 1.5
    shown.detail(loss="[red]0.5[/red]")
    shown("train", 30, 300)
    shown.bar.refresh()
    seen = file.getvalue()
    assert "[/] towns: train" in seen
    assert "10/s, 30/300, loss [red]0.5[/red], 3 s, about 27 s left" in seen
    clock.now += 1
    shown("evaluate", 0, 0)
    shown.bar.refresh()
    assert "[/] towns: evaluate" in file.getvalue()
    shown.end()
    shown.bar.stop()
    assert file.getvalue().endswith("\x1b[2K")  # the bar's line is cleared


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("work") as shown:
        shown("read", 0, 0)
    assert capsys.readouterr() == ("", "read ...\n")
    assert screen().width == 160


def test_a_silent_phase_is_looked_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.05)
    with progress("work") as shown:
        shown("collate", 0, 0)
        deadline = time.monotonic() + 10
        lines: list[str] = []
        while len(lines) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
            lines += capsys.readouterr().err.splitlines()
    assert lines[:3] == ["collate ...", "collate 0 s", "collate 0 s"]


def test_on_a_terminal_standard_output_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress("work") as shown:
        assert shown.bar is not None
        shown("read", 0, 0)
        sys.stdout.write("an answer\n")
    assert capsys.readouterr().out == "an answer\n"


@pytest.mark.parametrize("stream", ["none", "closed"])
def test_work_goes_on_where_nobody_reads(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", None if stream == "none" else closed)
    with progress("work") as shown:
        shown("read", 0, 0)
        shown("ground", 0, 0)


def test_a_failed_phase_is_not_done(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with progress("work") as shown:
            shown.clock = clock
            shown("read", 0, 0)
            clock.now += 10
            raise DataError("wrong")

    with pytest.raises(DataError, match="wrong"):
        fail()
    assert "done" not in capsys.readouterr().err


def test_what_steers_a_terminal_is_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["atom"], [], [["a\x1b[2Jb\x07", "left\u202eright", "nul\0", "åé"]], "cr\rx")
    printed = capsys.readouterr().out
    for shown in (r"cr\rx", r"a\x1b[2Jb\x07", r"left\u202eright", r"nul\x00", "åé"):
        assert shown in printed
    assert not set("\r\x1b\x07\u202e\0") & set(printed)
    assert visible("one line\n\tanother") == "one line\n\tanother"


def test_an_error_does_not_steer_a_terminal() -> None:
    result = CliRunner().invoke(app, ["check", "no\x1b[2J\rsuch"], color=True)
    assert result.exit_code == 2
    assert r"no\x1b[2J\rsuch" in result.stderr
    assert "\x1b" not in result.stderr
