"""Memory that the machine refuses: what was too large is named, with ways out, and the last checkpoint is kept."""

from pathlib import Path

import pytest

from tests.faults.killed_works import check_whole, of_training
from tests.faults.warm_process import Conditions, WarmProcess, done
from tests.toy_problem import write_toy_problem

MEGABYTE = 2**20


def write_large_problem(folder: Path, towns: int) -> Path:
    """So many towns that all pairs of them take gigabytes."""
    toy = write_toy_problem(folder, epochs=3)
    theory = (toy / "theory.r2n").read_text()
    (toy / "theory.r2n").write_text(theory + "rule all: liesIn(x, z) & liesIn(y, w) -> liesIn(x, w)\n")
    more = "".join(f"t{i}\tliesIn\tnorth\n" for i in range(towns))
    (toy / "train.tsv").write_text((toy / "train.tsv").read_text() + more)
    return toy


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ground", "train"])
@pytest.mark.parametrize("more", [40, 200])
def test_what_is_refused_is_told_with_its_phase(command: str, more: int, warm: WarmProcess, tmp_path: Path) -> None:
    write_large_problem(tmp_path / "toy", 3_000)
    under = Conditions(more_memory=more * MEGABYTE)
    budget = ["--max-groundings", 10**9] if command == "ground" else ["--set", "grounding.max_groundings=1000000000"]
    full = ["--strategy", "full"] if command == "ground" else ["--set", "grounding.strategy=full"]
    ended = warm.run("r2n", command, "toy", "--out", "made", *budget, *full, folder=tmp_path, under=under)
    assert ended.code in (1, 2), ended.said
    assert "Traceback" not in ended.said
    assert "memory" in ended.said
    assert "phase" in ended.said or "needs" in ended.said, ended.said
    assert "--memory" in ended.said or "--set" in ended.said or "strategy" in ended.said, ended.said
    check_whole(tmp_path)


@pytest.mark.slow
def test_the_last_checkpoint_is_kept(warm: WarmProcess, tmp_path: Path) -> None:
    toy = write_toy_problem(tmp_path / "toy", epochs=3)
    text = (toy / "problem.toml").read_text()
    (toy / "problem.toml").write_text(text.replace("dim = 8", "dim = 512"))  # a checkpoint of many megabytes
    for name in ("plain", "little"):
        (tmp_path / name).mkdir()
    whole = done(warm, tmp_path / "plain", "train", toy, "run", 1)
    killed = warm.run("train", toy, "run", 1, folder=tmp_path / "little", before=whole.operations - 8)
    assert killed.code is None
    before = (tmp_path / "little" / "run" / "checkpoint.json").read_bytes()
    for more in (24, 32):
        under = Conditions(more_memory=more * MEGABYTE)
        ended = warm.run("r2n", "train", toy, "--out", "run", "--resume", folder=tmp_path / "little", under=under)
        assert ended.code in (1, None), ended.said  # None: a library in C that gives up on its own
        assert "Traceback" not in ended.said
        assert ended.code is None or "memory" in ended.said, ended.said
        assert (tmp_path / "little" / "run" / "checkpoint.json").read_bytes() == before
        check_whole(tmp_path / "little")
    done(warm, tmp_path / "little", "train", toy, "run", 1)
    assert of_training(tmp_path / "little") == of_training(tmp_path / "plain")
