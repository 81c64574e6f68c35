"""What was trained on what, with which options, and the numbers to look at first."""

from dataclasses import replace

import pytest

from r2n.evaluation.report import Report
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.reporting import overview
from r2n.reporting.overview import figures, option_lines, option_text, probability_words, trained_on
from r2n.reporting.phases import PhaseCost
from r2n.reporting.records import OptionLine
from r2n.store.folder import RunFolder, read_config
from tests.unit.reporting.conftest import Kept


def test_the_problem_the_network_and_the_training(classified: Kept) -> None:
    config = read_config(RunFolder(classified.folder))
    found = trained_on(classified.trained, config, 30)
    facts = dict(found.facts)
    assert found.problem == "towns"
    assert facts["known"] == "44 true atoms"
    assert facts["queries"] == "valid 4 (2 true), test 4 (2 true)"
    assert facts["network"].startswith("complex of dim 8, 1 reasoning layer, ")
    assert facts["grounding"].startswith("full, ")
    assert facts["training"] == "30 epochs, bce loss, seed 0"
    assert "torch" in facts["made with"]
    assert facts["read from"].endswith("problem.toml")
    assert found.domains == (("town", 16), ("valley", 2))
    assert found.rules == ("rule neighbours: near(x, y) & liesIn(x, z) -> liesIn(y, z)",)
    assert [(line.name, line.is_closed, line.true, line.queries) for line in found.predicates] == [
        ("near", True, 32, 0),
        ("liesIn", False, 12, 8),
    ]


def test_a_training_that_was_stopped_says_so(classified: Kept) -> None:
    config = read_config(RunFolder(classified.folder))
    assert dict(trained_on(classified.trained, config, 7).facts)["training"].startswith("7 of at most 30 epochs")


def test_many_rules_and_predicates_are_cut(ranked: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_RULES", 0)
    monkeypatch.setattr(overview, "MOST_PREDICATES", 5)
    found = trained_on(ranked.trained, read_config(RunFolder(ranked.folder)), None)
    assert (found.rules, found.more_rules) == ((), 1)
    assert len(found.predicates) == 5
    counts = [line.true + line.false + line.queries for line in found.predicates]
    assert counts == sorted(counts, reverse=True)


def test_whose_probabilities_they_are(classified: Kept) -> None:
    assert probability_words(classified.trained) == "by one network, not calibrated"


def test_a_network_without_layers_reads_no_grounding(classified: Kept) -> None:
    trained = classified.trained
    bare = R2N.build(trained.knowledge, trained.options.changed(["model.layers=0"]).model)
    found = trained_on(replace(trained, model=bare), read_config(RunFolder(classified.folder)), None)
    assert dict(found.facts)["grounding"].startswith("none is read")


def test_backward_is_told_with_its_width_and_depth(classified: Kept) -> None:
    trained = classified.trained
    options = trained.options.changed(["grounding.strategy=backward", "grounding.depth=3"])
    found = trained_on(replace(trained, options=options), read_config(RunFolder(classified.folder)), None)
    assert dict(found.facts)["grounding"].startswith("backward, width 1, depth 3")


def test_options_say_where_they_come_from() -> None:
    options = Options().changed(["model.dim=8", "training.corrupted_positions=[-1]"])
    lines = {line.key: line for line in option_lines(options, {"training.corrupted_positions": "a reason"})}
    assert lines["model.dim"] == OptionLine("model.dim", "8", "32", "set")
    assert lines["model.layers"].origin == "default"
    changed = lines["training.corrupted_positions"]
    assert (changed.value, changed.default, changed.origin, changed.reason) == ("[-1]", "none", "chosen", "a reason")
    assert len(lines) == sum(len(section) for section in Options().model_dump().values())
    assert [option_text(value) for value in (None, True, "full", 0.1, (1, 2))] == [
        "none",
        "true",
        "full",
        "0.1",
        "[1, 2]",
    ]


def test_figures_are_the_main_metrics_and_what_it_took() -> None:
    report = Report("test", {"ap": 0.98765}, {}, {"task": "classification"})
    nothing = replace(report, split="valid", metrics={"ap": float("nan")})
    phases = (PhaseCost("read", 1.0, 2.0, 0.5), PhaseCost("train", 1.0, 1000.0, 1.5))
    assert figures([nothing, report], phases) == (
        ("valid ap", "none"),
        ("test ap", "0.988"),
        ("CPU-seconds", "1,002.0"),
        ("peak memory", "1.50 GB"),
    )
    assert figures([], ()) == ()
