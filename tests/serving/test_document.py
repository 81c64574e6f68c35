"""The API by its own document: thousands of requests made from it, valid and not, against a server that listens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.served_problem import write_served_run
from tests.serving.listening import listening

FEWEST_CASES = 2_000
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
SETTINGS = """\
[checks.negative_data_rejection]
expected-statuses = [400, 404, 405, 413, 415, 422]
"""  # what violates a schema may be too long as well


@pytest.mark.slow
def test_whatever_is_asked_the_answer_is_one_of_the_document(tmp_path: Path) -> None:
    with listening(write_served_run(tmp_path), "--seconds", "120") as server:
        (tmp_path / "schemathesis.toml").write_text(SETTINGS)  # it is read from where the command runs
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}openapi.json", "--mode", "all"]
        command += ["--max-examples", "250", "--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS)]
        command += [
            "--seed=1",
            "--continue-on-failure",
            "--suppress-health-check=all",
            "--no-color",
            "--request-timeout=120",
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-5_000:]
    cases = re.search(r"([\d,]+) generated", done.stdout)
    assert cases is not None, done.stdout[-2_000:]
    assert int(cases.group(1).replace(",", "")) >= FEWEST_CASES
