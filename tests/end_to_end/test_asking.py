"""r2n ask as a person and as a program use it: on a terminal, and through a pipe."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import run
from tests.toy_problem import write_toy_problem

PATIENCE = 240.0  # seconds; a test that fails takes so long, one that passes never does
PROGRAM = [sys.executable, "-c", "from r2n.__main__ import main; main()"]
SLOW_FOR_N0 = """
import time
from r2n.model.predictor import Predictor
answer = Predictor.predict
def predict(self, question, **wanted):
    while "n0" in question:
        print("at work", flush=True)
        time.sleep(0.05)
    return answer(self, question, **wanted)
Predictor.predict = predict
from r2n.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    run("train", write_toy_problem(folder / "towns", epochs=1), "--out", folder / "run")
    return folder / "run"


class Terminal:
    """A program on a terminal of its own, which one types to and reads from."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        self.shown = ""
        os.write(self.ours, text.encode())

    def wait_for(self, *texts: str) -> None:
        """Until these are shown, one after the other, after what was typed last."""
        end = time.monotonic() + PATIENCE
        for text in texts:
            while text not in self.shown:
                assert time.monotonic() < end, (text, self.shown)
                assert self.read(), (text, self.shown)
            self.shown = self.shown.partition(text)[2]

    def read(self) -> bool:
        """Read what is shown within a second; whether there may be more."""
        if select.select([self.ours], [], [], 1.0)[0]:
            try:
                self.shown += os.read(self.ours, 65536).decode(errors="replace")
            except OSError:  # the program has ended
                return False
        return True

    def exit_code(self) -> int:
        """Of the program, which is about to end."""
        end = time.monotonic() + PATIENCE
        while self.read():
            assert time.monotonic() < end, self.shown
        return self.process.wait(PATIENCE)


@pytest.fixture
def terminal(run_folder: Path, tmp_path: Path) -> Iterator[Terminal]:
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    shown = Terminal([sys.executable, "-c", SLOW_FOR_N0, "ask", str(run_folder)], environment)
    yield shown
    shown.process.kill()
    shown.process.wait()
    os.close(shown.ours)


@pytest.mark.slow
def test_a_conversation_on_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("towns>")
    terminal.type("lie\t")
    terminal.wait_for("sIn(")
    terminal.type("n5, nor\t")
    terminal.wait_for("th)")
    terminal.type("\r")
    terminal.wait_for("│ liesIn(n5, north) │", "└", "towns>")
    terminal.type(":why\r")
    terminal.wait_for("layer by layer", "towns>")
    terminal.type("liesIn(n5, )\r")
    terminal.wait_for("a constant or ? was expected", "^", "towns>")
    terminal.type(":with near(n5, s5)\r")
    terminal.wait_for("45 known atoms", "towns +1>")
    terminal.type("half a line\x03")
    terminal.wait_for("towns +1>")
    terminal.type("liesIn(n0, ?)\r")
    terminal.wait_for("at work")
    terminal.type("\x03")
    terminal.wait_for("interrupted", "towns +1>")
    terminal.type("liesIn(s5, south)\r")
    terminal.wait_for("│ liesIn(s5, south) │", "└", "towns +1>")
    terminal.type("\x04")
    assert terminal.exit_code() == 0
    asked = ["liesIn(n5, north)", "liesIn(n5, )", "liesIn(n0, ?)", "liesIn(s5, south)"]
    assert (tmp_path / "r2n" / "questions.txt").read_text().splitlines() == asked


@pytest.mark.slow
def test_a_program_asks_through_a_pipe_and_waits_for_each_answer(run_folder: Path) -> None:
    command = [*PROGRAM, "ask", str(run_folder), "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, env=dict(os.environ), stdin=pipe, stdout=pipe, stderr=pipe) as process:

        def told(line: str) -> dict[str, object]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        assert told("liesIn(n5, north)")["asked"] == 1
        assert "error" in told("liesIn(n5")
        assert told(":with near(n5, s5)")["with"] == ["near(n5, s5)"]
        assert told(":why liesIn(n5, north)")["atom"] == "liesIn(n5, north)"
        rest, _ = process.communicate(timeout=PATIENCE)
        assert rest == ""
        assert process.returncode == 2
