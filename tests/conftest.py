"""Test session: shapes and types checked at every call of r2n, and the Hypothesis profiles.

`pytest` runs the profile `fast`, which looks at the same few examples each time; `--hypothesis-profile free` at as
many as the tests state, others for each `--hypothesis-seed`, `thorough` at ten times as many, and `seeded` at others
for each seed, a quarter of those of `fast`.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

from tests.examples import FAST, STATED, THOROUGH

if os.environ.get("R2N_TYPE_CHECKS", "1") == "1":  # 0, as in `make test`: half of the time is that of the checks
    install_import_hook("r2n", "beartype.beartype")

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "fast", max_examples=FAST, derandomize=True, deadline=None, suppress_health_check=SLOW_TO_DRAW, database=None
)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=THOROUGH, derandomize=False)
settings.register_profile("free", settings.get_profile("fast"), max_examples=STATED, derandomize=False)
settings.register_profile("seeded", settings.get_profile("fast"), max_examples=FAST // 4, derandomize=False)
settings.load_profile("fast")


def pytest_configure(config: pytest.Config) -> None:
    """Let beartype throw its dice: it checks one random item of a container, also while Hypothesis draws."""
    config.addinivalue_line("filterwarnings", "ignore:Do not use the `random` module inside strategies")
