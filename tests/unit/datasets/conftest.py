"""The folder of all data, where there is one."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder() -> Path:
    """The folder in R2N_DATA; a test that needs it is skipped where there is none."""
    given = os.environ.get("R2N_DATA")
    if not given or not Path(given).is_dir():
        pytest.skip("R2N_DATA names no folder: the files it would hold are not compared")
    return Path(given)
