"""How the command line starts: without what it does not need, and without the warnings of libraries."""

import os
import subprocess
import sys

HEAVY = ("torch", "sklearn", "matplotlib", "pyarrow.dataset")
LOADED = f"[name for name in {HEAVY} if name in sys.modules]"
WARNING = """
import sys, warnings
import r2n.cli
@r2n.cli.app.command("warn")
def warn():
    warnings.filterwarnings("always", category=RuntimeWarning)
    warnings.warn("overflow encountered", RuntimeWarning)
    print("worked")
sys.argv = ["r2n", "warn"]
r2n.cli.main()
"""


def printed(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=environment)


def test_the_import_loads_nothing_heavy() -> None:
    done = printed(f"import sys, r2n\nprint({LOADED})")
    assert done.stdout == "[]\n", done.stderr


def test_commands_without_a_network_load_nothing_heavy() -> None:
    code = """
import sys
from typer.testing import CliRunner
from r2n.cli import app
for command in (["check", "countries-s3"], ["ground", "countries-s3"], ["datasets", "list"]):
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
"""
    done = printed(f"{code}print({LOADED})")
    assert done.stdout == "[]\n", done.stderr


def test_no_warning_of_a_library_reaches_the_user() -> None:
    done = printed(WARNING)
    assert (done.stdout, done.stderr) == ("worked\n", "")


def test_who_asks_for_warnings_gets_them() -> None:
    done = printed(WARNING, "-W", "default")
    assert done.stdout == "worked\n"
    assert "RuntimeWarning: overflow encountered" in done.stderr
