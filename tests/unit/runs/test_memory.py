"""Peak memory."""

from pathlib import Path

import numpy as np
import pytest

from r2n.runs import memory
from r2n.runs.memory import forget_peak, peak_gigabytes


def test_a_peak_is_seen_and_forgotten() -> None:
    forget_peak()
    before = peak_gigabytes()
    held = np.ones(40_000_000)  # 0.32 GB
    assert peak_gigabytes() >= before + 0.3
    del held
    forget_peak()
    assert peak_gigabytes() < before + 0.2


def test_where_the_system_tells_nothing_the_whole_process_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CLEAR", Path("/nowhere/clear"))
    monkeypatch.setattr(memory, "_STATUS", Path("/nowhere/status"))
    forget_peak()
    assert peak_gigabytes() > 0.01
