"""The time of a training, said before the work, and what would take less."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from r2n.cli import app
from r2n.data.problem import Problem
from r2n.datasets.benchmarks import load
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.model.choices import choose_options
from r2n.model.preflight import Speed, Work, cost_warnings, measured_speed
from r2n.options import GroundingOptions

THEORY = """\
domain record
predicate same(record, record)
rule transitive: same(x, y) & same(y, z) -> same(x, z)
"""
HEADER = "a\tb\tlabel\n"
PROBLEM = """\
theory = "theory.r2n"
[facts]
train = { file = "train.tsv", predicate = "same", header = true }
[queries]
test = { file = "test.tsv", predicate = "same", header = true }
[training]
threads = 1
"""


def records_problem(folder: Path, records: int, more: str = "", *, false: bool = True) -> Problem:
    """Records in groups of three: which of them are the same, a few pairs labelled true and (`false`) false."""
    pairs = [(i, i + 1, 1) for i in range(records - 1) if i % 3 < 2]
    pairs += [(i, i - i % 3 + 2, 1) for i in range(0, records - 2, 3)]
    pairs += [(i, (i + 7) % records, 0) for i in range(records) if false]
    rows = [f"r{a}\tr{b}\t{label}\n" for a, b, label in pairs]
    folder.mkdir()
    (folder / "theory.r2n").write_text(THEORY)
    (folder / "train.tsv").write_text(HEADER + "".join(row for i, row in enumerate(rows) if i % 4))
    (folder / "test.tsv").write_text(HEADER + "".join(rows[::4]))
    (folder / "problem.toml").write_text(PROBLEM + more)
    return load(folder)


def sizes_of(problem: Problem, strategy: str) -> int:
    grounder = make_grounder(GroundingOptions.model_validate({"strategy": strategy}))
    return len(grounder.ground(Store(problem.knowledge), problem.atoms))


def work_of(problem: Problem, *changes: str) -> Work:
    work = Work.of(problem.knowledge, problem.options.changed(changes))
    assert work is not None
    return work


def test_a_long_training_is_said_with_what_has_fewer_ground_rules(tmp_path: Path) -> None:
    """Transitivity over 207 records: 207 ** 3 ground rules, under the budget."""
    problem = records_problem(tmp_path / "records", 207)
    with_candidates = records_problem(tmp_path / "candidates", 207, "[candidates.same]\n")
    (text,) = cost_warnings(problem, problem.options)
    assert re.match(r"the training takes about [0-9 hmins]+ on this machine: 300 epochs of [0-9. hmins]+,", text)
    assert "each over 8,869,743 ground rules (full grounding)" in text
    known = sizes_of(problem, "known-body")
    assert 0 < known < 1_000
    assert f"[candidates.same] in the problem file ({sizes_of(with_candidates, 'full')})" in text
    assert f"grounding.strategy = 'known-body' and training.batch_size ({known})" in text
    assert "grounding.strategy = 'backward' (about " in text
    assert f"model.rules = 'counted' (0, and {known} with a known body that are counted once)" in text
    assert cost_warnings(with_candidates, with_candidates.options) == []


def test_candidates_are_named_only_where_they_can_be_taken(tmp_path: Path) -> None:
    """Where all labels are true, to be a candidate would be to be true; words that texts share are another way."""
    problem = records_problem(tmp_path / "records", 207, false=False)
    (text,) = cost_warnings(problem, problem.options)
    assert "candidates" not in text
    (tmp_path / "records" / "texts.tsv").write_text(
        "id\ttext\n" + "".join(f"r{i}\tname{i // 3} street{i // 3} of {i}\n" for i in range(207))
    )
    more = f'{PROBLEM}[features.record]\ntable = "texts.tsv"\ntext = "text"\n'
    (tmp_path / "records" / "problem.toml").write_text(more)
    (text,) = cost_warnings(described := load(tmp_path / "records"), described.options)
    assert "shared_words = 2 under [candidates.same] in the problem file (" in text
    (tmp_path / "records" / "problem.toml").write_text(f"{more}[candidates.same]\nshared_words = 2\n")
    blocked = load(tmp_path / "records")
    assert f"shared_words = 2 under [candidates.same] in the problem file ({sizes_of(blocked, 'full'):,})" in text


def test_the_predicted_seconds_grow_with_the_ground_rules(tmp_path: Path) -> None:
    large, small = (work_of(records_problem(tmp_path / str(size), size)) for size in (200, 100))
    assert large.size.count == 8 * small.size.count
    speed = measured_speed(large)
    assert speed.of_ground_rule > 0
    of_rules = replace(speed, fixed=0.0)
    assert of_rules.seconds(large.size.count) == pytest.approx(8 * of_rules.seconds(small.size.count))
    assert Speed(2.0, 0.5).seconds(10) == 7.0


def test_measuring_changes_nothing_outside(tmp_path: Path) -> None:
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    measured_speed(work_of(records_problem(tmp_path / "records", 9)))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_steps_may_each_go_through_all_ground_rules(tmp_path: Path) -> None:
    problem = records_problem(tmp_path / "records", 207)
    whole, steps = work_of(problem), work_of(problem, "training.batch_size=20")
    assert (whole.steps, steps.steps) == (1, -(-len(problem.train) // 20))
    assert steps.operations == steps.steps * whole.operations
    backward = ("grounding.strategy=backward", "training.negatives=2")
    once, parts = (work_of(problem, *backward, *more) for more in ([], ["training.batch_size=20"]))
    assert once.size.count <= parts.size.count < once.size.count + parts.steps
    assert parts.atoms < once.atoms


def test_other_layers_of_the_network_are_more_work(tmp_path: Path) -> None:
    problem = records_problem(tmp_path / "records", 30)
    assert work_of(problem, "model.layers=4").operations == 2 * work_of(problem, "model.layers=2").operations
    assert work_of(problem, "model.dim=64").operations > 2 * work_of(problem, "model.dim=32").operations
    assert work_of(problem, "model.rules=counted").operations == 0


@pytest.mark.parametrize("name", ["countries-s1", "countries-s2", "countries-s3", "nations", "kinship", "umls"])
def test_nothing_is_said_or_measured_of_the_packaged_problems(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.model.preflight.measured_speed", None)  # calling it would fail
    problem = load(name)
    assert cost_warnings(problem, choose_options(problem, problem.options)[0]) == []


def test_check_and_train_say_it_before_the_work(tmp_path: Path) -> None:
    records_problem(tmp_path / "records", 207)
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "records")])
    assert "warning: the training takes about" in checked.stderr
    refused = ["--out", str(tmp_path / "run"), "--set", "training.patience=20"]
    trained = CliRunner().invoke(app, ["train", str(tmp_path / "records"), *refused])
    assert trained.exit_code == 2
    assert trained.stderr.index("warning: the training takes") < trained.stderr.index("queries to validate on")
