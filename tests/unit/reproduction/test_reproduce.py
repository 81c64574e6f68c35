"""The tables, measured."""

from itertools import product
from pathlib import Path

import pytest

from r2n.data.problem import load_problem
from r2n.datasets.benchmarks import load
from r2n.evaluation.ranking import EvaluationOptions
from r2n.mining.mine import Constrained
from r2n.model.run import evaluate_split, prepare_run
from r2n.options import Options
from r2n.reproduction import reproduce as module
from r2n.reproduction.reproduce import Measured, TableRow, cells, measure, summarise, table_rows, with_rules
from tests.ordered_problem import write_ordered_problem


def quick(table: str) -> list[TableRow]:
    """The rows of a table with two epochs and one dataset."""
    return [
        row.model_copy(update={"training": {"epochs": 2}, "datasets": ("countries-s1",)}) for row in table_rows(table)
    ]


def test_every_row_runs_and_is_summarised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "table_rows", quick)
    measured = list(module.reproduce(cells("countries", [0, 1])))
    assert len(measured) == 17, "the counted proofs need one seed"
    records = summarise(measured)
    assert {record["metric"] for record in records} == {"ap", "roc_auc_macro", "memory_gb"}
    shown = [r["model"] for r in records if r["metric"] == "ap" and " minus " not in r["model"]]
    assert shown == [row.row for row in quick("countries")]
    for record in records:
        assert set(record) == {"table", "dataset", "model", "metric", "mean", "std", "seeds", "paper", "cpu_seconds"}


def test_several_processes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "table_rows", quick)
    chosen = cells("countries", [0], models=["proofs counted"], datasets=["countries-s1"])
    assert len(chosen) == 1
    alone, together = (list(module.reproduce(chosen, jobs=jobs)) for jobs in (1, 2))
    assert [item.metrics for item in alone] == [item.metrics for item in together]


def test_mean_and_deviation_are_over_seeds() -> None:
    row = table_rows("countries")[-1]
    measured = [Measured(row, "countries-s1", seed, {"ap": value}, 1.0 + seed) for seed, value in enumerate((0.5, 0.7))]
    (record,) = summarise(measured)
    assert record["mean"] == pytest.approx(0.6)
    assert record["std"] == pytest.approx(0.1 * 2**0.5)
    assert (record["seeds"], record["paper"], record["cpu_seconds"]) == (2, 1.0, 1.5)


def test_rules_are_left_out_or_replaced_and_nothing_else_changes() -> None:
    problem = load("countries-s1")
    assert with_rules(problem, True) is problem
    for rules, names in ((False, []), ("implicit near: [neighborOf(x, y), neighborOf(y, x)]", ["near"])):
        other = with_rules(problem, rules)
        assert [rule.name for rule in other.knowledge.theory.rules] == names
        assert other.knowledge.theory.predicates == problem.knowledge.theory.predicates
        assert other.train is problem.train


def test_the_average_is_over_all_datasets_seed_by_seed() -> None:
    row = table_rows("cora")[-1]
    figures = {0: (0.1, 0.2, 0.3, 0.4, 0.5), 1: (0.2, 0.3, 0.4, 0.5, 0.6)}
    measured = [
        Measured(row, dataset, seed, {"ap": value, "rule_accuracy": 1 - value}, 1.0)
        for seed, values in figures.items()
        for dataset, value in zip(row.datasets, values, strict=True)
    ]
    record, rules = (r for r in summarise(measured) if r["dataset"] == "cora, average")
    assert record["mean"] == pytest.approx(0.35)
    assert record["std"] == pytest.approx(0.1 / 2**0.5)
    assert (record["metric"], record["seeds"], record["paper"]) == ("ap", 2, 0.922)
    assert (rules["metric"], rules["mean"], rules["paper"]) == ("rule_accuracy", pytest.approx(0.65), 0.822)
    assert not [r for r in summarise(measured[:4]) if r["dataset"] == "cora, average"], "a fold is missing"


def figures(row: TableRow, *values: float) -> list[Measured]:
    return [Measured(row, "kinship", seed, {"mrr": value}, 1.0) for seed, value in enumerate(values)]


def two_rows() -> tuple[TableRow, TableRow]:
    base = table_rows("countries")[2].model_copy(update={"row": "input", "order": 1})
    return base, base.model_copy(update={"row": "network", "order": 2, "minus": "input"})


def test_the_distance_from_the_input_layer_is_taken_seed_by_seed() -> None:
    base, above = two_rows()
    records = summarise([*figures(above, 0.9, 0.7), *figures(base, 0.6, 0.5, 0.1)])
    assert [(r["model"], r["seeds"]) for r in records] == [("input", 3), ("network", 2), ("network minus input", 2)]
    assert records[-1]["mean"] == pytest.approx(0.25)
    assert records[-1]["std"] == pytest.approx(0.05 * 2**0.5)
    alone = summarise(figures(above, 0.9, 0.7))
    assert [record["model"] for record in alone] == ["network"]


def test_the_distance_from_a_part_is_that_of_its_own_part() -> None:
    rows = [
        table_rows("countries")[2].model_copy(update={"row": name, "order": i, "minus": "without counted rules"})
        for i, name in enumerate(("given rules", "mined rules"))
    ]
    parts = [{"without counted rules": {"mrr": 0.5}}, {"without counted rules": {"mrr": 0.25}}]
    items = [Measured(row, "kinship", 0, {"mrr": 0.75}, 1.0, part) for row, part in zip(rows, parts, strict=True)]
    found = {r["model"]: r["mean"] for r in summarise(items) if "minus" in r["model"]}
    assert found == {"given rules minus without counted rules": 0.25, "mined rules minus without counted rules": 0.5}


def test_the_distance_is_taken_in_what_both_rows_measure() -> None:
    base, above = two_rows()
    mine = Measured(above, "cora-s1", 0, {"ap": 0.9, "rule_accuracy": 0.8}, 1.0)
    records = summarise([mine, Measured(base, "cora-s1", 0, {"ap": 0.6}, 1.0)])
    assert [(r["model"], r["metric"]) for r in records if "minus" in r["model"]] == [("network minus input", "ap")]


def test_published_figures_are_listed_and_not_measured() -> None:
    (item,) = module.reproduce(cells("kgc", [0, 1, 2], models=["NTP"], datasets=["umls"]))
    records = summarise([item])
    assert {r["metric"]: r["paper"] for r in records} == {"mrr": 0.8, "hits@1": 0.7, "hits@3": 0.88, "hits@10": 0.95}
    assert all((r["mean"], r["std"], r["seeds"]) == (None, None, 0) for r in records)


def constrained_row(**changes: object) -> TableRow:
    training = {"epochs": 2, "hiding": 0.0}
    row = {"table": "t", "row": "R2N", "order": 1, "about": "", "datasets": ("road",), "training": training}
    return TableRow.model_validate(row | changes)


def test_a_ranking_with_constraints_is_a_row_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    road = load_problem(write_ordered_problem(tmp_path))
    monkeypatch.setattr(module, "_problem", lambda _: road)
    row = constrained_row(constraints=True)
    item = measure(row, "road", 0)
    run = prepare_run(road, row.options(road.options), 0)
    list(run.trainer)
    plain = evaluate_split(run.logits(), road, "test").metrics
    better = evaluate_split(
        run.logits(), road, "test", options=EvaluationOptions(forbidden=Constrained.from_knowledge(road.knowledge))
    ).metrics
    assert plain["mrr"] < better["mrr"], "else this test shows nothing"
    shown = {r["model"]: r["mean"] for r in summarise([item]) if r["metric"] == "mrr"}
    assert shown == pytest.approx({"R2N": plain["mrr"], "R2N, with constraints": better["mrr"]})
    assert not measure(constrained_row(), "road", 0).parts, "only where it is asked for"


@pytest.mark.parametrize("table", ["countries", "ablation", "cora", "kgc", "wn18rr", "fb15k237"])
def test_only_rows_with_reasoning_layers_are_named_r2n(table: str) -> None:
    for row in table_rows(table):
        if row.kind == "network" and row.row.startswith("R2N"):
            model = row.options(Options()).model
            runs_layers = model.reasoner == "paths" or (row.rules is not False and model.has_layers)
            assert runs_layers, f"{row.row} runs no reasoning layer"


def test_rows_with_mined_rules_are_counted_and_ranked_with_constraints_too() -> None:
    rows = [row for row in table_rows("kgc") if row.mined]
    assert sorted(dataset for row in rows for dataset in row.datasets) == ["kinship", "nations", "umls"]
    for row in rows:
        assert row.mined <= 2
        assert row.constraints
        assert row.options(load(row.datasets[0]).options).model.rules == "counted"


@pytest.mark.parametrize("table", ["wn18rr", "fb15k237"])
def test_given_and_mined_rules_are_combined_with_the_same_network(table: str) -> None:
    given, mined = (row for row in table_rows(table) if "counted" in row.row)
    assert (given.row, mined.row) == ("ComplEx + given rules, counted", "ComplEx + mined rules, counted")
    assert (given.grounding, given.model, given.training) == (mined.grounding, mined.model, mined.training)
    assert (mined.mined, given.mined, given.model["rules"]) == (3 if table == "wn18rr" else 2, 0, "counted")


@pytest.mark.parametrize("dataset", ["kinship", "nations"])
def test_the_network_under_mined_rules_is_r2nc(dataset: str) -> None:
    rows = {row.row: row for row in table_rows("kgc") if dataset in row.datasets}
    options = load(dataset).options
    alone, under = (rows[name].options(options).model_dump() for name in ("R2NC", "R2NC + mined rules, counted"))
    for section, key in product(("model", "training"), ("rules", "rule_epochs", "counted_learning_rate")):
        alone[section].pop(key, None)
        under[section].pop(key, None)
    assert under == alone
