"""Progress that nobody asked for."""

from r2n.progress import Progress, no_progress


def test_nobody_is_told() -> None:
    told: Progress = no_progress
    assert told("ground", 1, 2) is None
