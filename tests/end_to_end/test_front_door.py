"""The front door: train, evaluate, predict, explain, change facts, save and load, from Python as from the command."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2n
from r2n.errors import CheckpointError, ConfigError
from r2n.training.fit import Epoch
from tests.command_line import invoke
from tests.toy_problem import write_toy_problem

FEW: Any = {"epochs": 3, "dim": 8}
SETS = [part for key in ("training.epochs=3", "model.dim=8") for part in ("--set", key)]


def kept(folder: Path) -> dict[str, Any]:
    """What a run folder holds of a training: configuration, checksum of weights, trace without times, calibration."""
    read = {path.name: json.loads(path.read_text()) for path in folder.glob("c*.json")}
    trace = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    checkpoint = read["checkpoint.json"]["sha256"]
    return {**read, "checkpoint.json": checkpoint, "trace": [{**epoch, "seconds": 0} for epoch in trace]}


@pytest.fixture(scope="module")
def model() -> r2n.Model:
    return r2n.train(r2n.load("countries-s3"), seed=0, **FEW)


def test_python_and_the_command_train_the_same_folder(model: r2n.Model, tmp_path: Path) -> None:
    """Keywords are `--set`, and a saved model is what `r2n train --out` writes."""
    model.save(tmp_path / "saved")
    loaded, asked = r2n.Model.load(tmp_path / "saved"), "locatedIn(germany, ?)"
    assert loaded.predict(asked, top=3) == model.predict(asked, top=3)
    np.testing.assert_array_equal(loaded.logits(model.problem.test.atoms), model.logits(model.problem.test.atoms))
    invoke("train", "countries-s3", "--out", tmp_path / "trained", "--seed", 0, *SETS, "--no-report")
    assert kept(tmp_path / "saved") == kept(tmp_path / "trained")
    names = {path.name.partition("-")[0] for path in (tmp_path / "saved").iterdir()}
    assert names <= {path.name.partition("-")[0] for path in (tmp_path / "trained").iterdir()}
    assert json.loads(invoke("evaluate", tmp_path / "saved", "--json"))["metrics"] == model.evaluate("test").metrics
    with pytest.raises(ConfigError, match="is not empty"):
        model.save(tmp_path / "saved")


def test_a_changed_model_is_not_saved(model: r2n.Model, tmp_path: Path) -> None:
    rule = model.problem.knowledge.theory.rules[0].name
    for changed in (model.with_facts("neighborOf(atlantis, spain)"), model.without_rules([rule])):
        with pytest.raises(ConfigError, match="its facts or rules were changed"):
            changed.save(tmp_path / "changed")
    assert not (tmp_path / "changed").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made"):
        model.save(tmp_path / "file" / "run")


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> r2n.Problem:
    """A problem for which r2n chooses which position to corrupt."""
    folder = write_toy_problem(tmp_path_factory.mktemp("front") / "towns", epochs=4)
    file = folder / "problem.toml"
    file.write_text(file.read_text().replace("corrupted_positions = [-1]\n", ""))
    return r2n.load(folder)


def test_what_is_chosen_is_in_the_model_and_said(towns: r2n.Problem, capsys: pytest.CaptureFixture[str]) -> None:
    model = r2n.train(towns, baseline=False)
    assert model.chosen is not None
    assert list(model.chosen) == ["training.corrupted_positions"]
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("chosen: ")]
    assert said == f"chosen: training.corrupted_positions = (-1,) ({model.chosen['training.corrupted_positions']})"
    assert r2n.train(towns, corrupted_positions=[0], baseline=False, epochs=1).chosen == {}


def test_options_come_as_keywords_texts_or_an_object(towns: r2n.Problem) -> None:
    by_keyword = r2n.train(towns, layers=1, epochs=2, baseline=False)
    by_text = r2n.train(towns, options=["model.layers=1", "training.epochs=2"], baseline=False)
    by_object = r2n.train(towns, options=towns.options.with_values({"layers": 1, "epochs": 2}), baseline=False)
    assert by_keyword.options == by_text.options == by_object.options
    np.testing.assert_array_equal(by_keyword.logits(towns.atoms), by_text.logits(towns.atoms))
    with pytest.raises(ConfigError, match=r"there is no option 'epoch'\n  did you mean 'epochs'"):
        r2n.train(towns, epoch=3)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ConfigError, match=r"model\.dim"):
        r2n.train(towns, dim="wide")  # pyright: ignore[reportArgumentType]


def test_a_training_that_was_stopped_is_resumed(towns: r2n.Problem, tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(epoch: Epoch) -> None:
        seen.append(epoch.number)
        if epoch.number == 2:
            raise KeyboardInterrupt

    def train(name: str, **given: Any) -> r2n.Model:
        return r2n.train(towns, out=tmp_path / name, baseline=False, checkpoint_seconds=0.0, **given)

    with pytest.raises(KeyboardInterrupt):
        train("cut", callback=stop)
    assert seen == [1, 2]
    with pytest.raises(ConfigError, match="already holds a run"):
        train("cut")
    with pytest.raises(CheckpointError, match=r"training\.epochs = 4, and goes on with that; now it is to be 9"):
        train("cut", resume=True, epochs=9)
    resumed = train("cut", resume=True, callback=lambda epoch: seen.append(epoch.number))
    assert seen[2:] in ([2, 3, 4], [3, 4])
    assert resumed.chosen is None, "the run has its options"
    full = train("whole")
    np.testing.assert_array_equal(resumed.logits(towns.atoms), full.logits(towns.atoms))
    assert kept(tmp_path / "cut") == kept(tmp_path / "whole")


def test_an_ensemble_is_a_model_of_several_networks(towns: r2n.Problem, tmp_path: Path) -> None:
    model = r2n.train(towns, ensemble=2, epochs=2, baseline=False)
    assert len(model.networks) == len(model.members) == 2
    answers = model.predict("liesIn(n5, ?)")
    assert all(item.spread is not None for item in answers)
    model.save(tmp_path / "both")
    assert r2n.Model.load(tmp_path / "both").predict("liesIn(n5, ?)") == answers


def test_a_query_passes_few_files(model: r2n.Model) -> None:
    """The walk of docs/architecture.md: what a query runs through once a forward pass is kept."""
    model.predict("locatedIn(germany, ?)")
    source, files = str(Path(r2n.__file__).parent), set[str]()
    sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        model.predict("locatedIn(italy, ?)", top=3)
    finally:
        sys.setprofile(None)
    walk = {name.removeprefix(source + "/") for name in files if name.startswith(source)}
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^([a-z_/]+\.py) ", page, re.M)
    assert set(drawn) <= walk, "type checks may add one"
    assert len(walk) <= 14
