"""r2n train, evaluate."""

import json
from pathlib import Path
from shlex import split

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.errors import DataError
from tests.command_line import invoke
from tests.ordered_problem import write_ordered_problem
from tests.toy_problem import write_toy_problem

runner = CliRunner()
SMALL = ["--set", "training.epochs=1", "--set", "training.hiding=0"]


def test_results_and_next_steps_come_before_the_report(tmp_path: Path) -> None:
    folder, run = write_toy_problem(tmp_path / "to wns", epochs=2), tmp_path / "a run"
    shown = runner.invoke(app, ["train", str(folder), "--out", str(run)]).output
    steps = [line.removeprefix("next: ") for line in shown.splitlines() if line.startswith("next: ")]
    assert shown.index("towns, test") < shown.index("next: ") < shown.index("report ...") < shown.index("report.html")
    assert steps == [
        f"r2n predict '{run}' 'liesIn(n5, ?)'",
        f"r2n explain '{run}' 'liesIn(n5, north)'",
        f"r2n serve '{run}'",
    ]
    for step in steps[:2]:
        assert "liesIn(n5, north)" in invoke(*split(step)[1:])


def test_a_run_is_whole_before_its_report_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends the process while report.html is made takes nothing with it."""
    folder, run = write_toy_problem(tmp_path / "towns", epochs=2), tmp_path / "run"

    def killed(*_: object) -> None:
        raise SystemExit(9)

    monkeypatch.setattr("r2n.reporting.pages.build_report", killed)
    assert "towns, test" in invoke("train", str(folder), "--out", str(run), code=9)
    assert len(json.loads((run / "report.json").read_text())["reports"]) == 2
    assert "liesIn(n5, north)" in invoke("predict", str(run), "liesIn(n5, ?)")


def test_the_default_folder_has_the_name_of_the_problem_and_the_seed_and_may_have_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = write_toy_problem(tmp_path / "towns", epochs=1), tmp_path / "runs" / "towns-5"
    monkeypatch.chdir(tmp_path)
    shown = runner.invoke(app, ["train", str(folder), "--seed", "5", "--no-report"]).output
    assert "towns, test" in shown
    assert "report.html" not in shown
    assert (run / "report.json").exists()
    assert not (run / "report.html").exists()


def test_valid_says_what_it_chose_and_every_report_names_the_combination(tmp_path: Path) -> None:
    folder, out = write_toy_problem(tmp_path / "towns", epochs=3), tmp_path / "run"
    for part in ("valid", "test"):  # true ones alone: a ranking
        lines = (folder / f"{part}.tsv").read_text().splitlines()
        (folder / f"{part}.tsv").write_text("".join(f"{line}\n" for line in lines if line.endswith("\t1")))
    changes = ("model.rules=counted", "training.patience=10")
    options = [part for change in changes for part in ("--set", change)]
    uses = "used for early stopping and for choosing the combination of network and rules"
    filtered = "the same queries, but facts of other splits were not filtered: its metric was another"
    shown = " ".join(invoke("train", str(folder), "--out", str(out), *options).split())
    assert f"valid is not held out: {uses}" in shown
    assert f"valid in training: {filtered}" in shown
    assert shown.count("not held out") == 1, "of the test nothing was chosen"
    assert shown.count("(the best of 18 on the validation queries)") == 2
    reports = json.loads((out / "report.json").read_text())["reports"]
    valid, test = (report["protocol"] for report in reports)
    assert (valid["not_held_out"], valid["in_training"]) == (uses, filtered)
    assert not {"not_held_out", "in_training"} & test.keys()
    assert valid["combination"] == test["combination"]
    page = (out / "report.html").read_text()
    assert f"Not held out: {uses}" in page
    assert "valid mrr, not held out" in page
    assert "the best of 18 on the validation queries" in page
    assert json.loads(invoke("evaluate", str(out), "--split", "valid", "--json"))["protocol"] == valid
    assert json.loads(invoke("evaluate", str(out), "--json"))["protocol"] == test
    compared = json.loads(invoke("compare", str(out), str(out), "--json"))["splits"]
    assert [f"not held out: {uses}" in split["asked"] for split in compared] == [True, False]


def test_valid_is_held_out_if_nothing_is_chosen_on_it(run_folder: Path) -> None:
    reports = json.loads((run_folder / "report.json").read_text())["reports"]
    assert not any({"not_held_out", "combination"} & set(report["protocol"]) for report in reports)


def test_evaluate(run_folder: Path) -> None:
    document = json.loads(invoke("evaluate", str(run_folder), "--json"))
    assert document["split"] == "test"
    assert {"ap", "roc_auc_macro"} <= set(document["metrics"])
    assert "towns, valid" in invoke("evaluate", str(run_folder), "--split", "valid")
    assert "no queries 'dev'" in invoke("evaluate", str(run_folder), "--split", "dev", code=2)
    refused = invoke("evaluate", str(run_folder), "--sample", "5", code=2)
    assert "only a ranking is sampled, and the queries 'test' are classified: some are false" in " ".join(
        refused.split()
    )


def test_a_ranking_of_a_sample_says_so(tmp_path: Path) -> None:
    small = ("training.epochs=1", "model.dim=4", "model.reasoner=none")
    changes = [part for change in small for part in ("--set", change)]
    run = str(tmp_path / "run")
    invoke("train", "nations", "--out", run, "--no-report", "--no-baseline", *changes)
    full = json.loads(invoke("evaluate", run, "--json"))
    document = json.loads(invoke("evaluate", run, "--sample", "50", "--seed", "3", "--json"))
    assert full["intervals"] == {}
    assert document["protocol"]["queries"] == 50
    assert document["protocol"]["sample"] == f"50 of {full['protocol']['queries']} queries, drawn with seed 3"
    low, high = document["intervals"]["mrr"]
    assert low < document["metrics"]["mrr"] < high
    shown = invoke("evaluate", run, "--sample", "50", "--seed", "3")
    assert "a sample" in shown
    assert f"{low:.4f}" in shown
    assert f"{high:.4f}" in shown
    assert "sample" not in invoke("evaluate", run)


def test_train_tells_its_phases_on_standard_error(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns", epochs=2)
    result = runner.invoke(app, ["train", str(folder), "--out", str(tmp_path / "run"), "--resume", "--json"])
    assert json.loads(result.stdout)["epochs"] == 2, "there is no run to resume, so one begins"
    phases = [line.removesuffix(" ...") for line in result.stderr.splitlines() if line.endswith(" ...")]
    expected = ["read", "ground", "train", "calibrate", "train without rules, to compare", "evaluate", "report"]
    assert [phase for phase in phases if phase != "collate"] == expected


def test_memory_is_handed_on_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def prepare(*_: object, **options: object) -> None:
        given.append(options.get("memory"))
        raise DataError("enough")

    monkeypatch.setattr("r2n.model.training.prepare_run", prepare)
    folder = write_toy_problem(tmp_path / "towns")
    for arguments in (["--memory", "2 GB"], ["--memory", "500MiB"], []):
        assert "error: enough" in invoke("train", str(folder), *arguments, code=2)
    assert given == [2 * 10**9, 500 * 2**20, None]
    for arguments in (["train", str(folder)], ["evaluate", str(tmp_path)]):
        assert "'much' is no size of memory" in invoke(*arguments, "--memory", "much", code=2)


def test_a_run_is_resumed_with_its_own_options(tmp_path: Path) -> None:
    problem, out = str(write_toy_problem(tmp_path / "towns")), str(tmp_path / "run")
    begun = ("--out", out, "--seed", "4", "--set", "training.epochs=3", "--set", "model.dim=4")
    full = json.loads(invoke("train", problem, "--no-report", *begun, "--json"))
    result = runner.invoke(
        app, ["train", problem, "--no-report", "--out", out, "--resume", "--set", "training.epochs=3", "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == full
    assert "note: resumed with the run's own options: model.dim = 4 (the problem file: 8)" in result.stderr
    assert "training.epochs = 3 (the problem file: 60)" in result.stderr


def test_a_run_is_not_resumed_with_others(run_folder: Path) -> None:
    problem = str(run_folder.parent / "towns")
    text = invoke("train", problem, "--out", str(run_folder), "--resume", "--device", "cpu", code=2)
    expected = 'was begun with training.device = "auto", and goes on with that; now it is to be "cpu"'
    assert f"the run in {run_folder} {expected}" in text
    assert "leave it out, or give another --out" in text


def test_baselines_and_constraints_stand_with_a_ranking(tmp_path: Path) -> None:
    folder, out = write_ordered_problem(tmp_path / "road"), str(tmp_path / "run")
    shown = invoke("train", str(folder), "--out", out, "--set", "model.rules=counted")
    assert "without reasoning" in shown
    document = json.loads(invoke("evaluate", out, "--json"))
    assert set(document["baselines"]) == {"rules alone", "without reasoning"}
    assert set(document["baselines"]["rules alone"]) == set(document["metrics"])
    kept = json.loads((tmp_path / "run" / "report.json").read_text())["reports"]
    assert [report["baselines"] for report in kept if report["split"] == "test"] == [document["baselines"]]
    both = json.loads(invoke("evaluate", out, "--constraints", "--json"))
    constrained = both.pop("with_constraints")
    assert both == document, "the plain result stays what it is"
    assert constrained["protocol"]["constraints"] == "irreflexive 1, asymmetric 1"
    assert constrained["metrics"]["mrr"] >= document["metrics"]["mrr"]
    shown = " ".join(invoke("evaluate", out, "--kind", "irreflexive", "--kind", "disjoint").split())
    assert "road, test, with constraints" in shown
    assert "constraints: irreflexive 1" in shown
    assert "no kind of constraint 'loops'" in invoke("evaluate", out, "--kind", "loops", code=2)


def test_probabilities_that_are_not_calibrated_are_told_wherever_calibration_is(tmp_path: Path) -> None:
    folder, run = write_toy_problem(tmp_path / "towns"), str(tmp_path / "run")
    valid = folder / "valid.tsv"
    valid.write_text("".join(line for line in valid.read_text().splitlines(True) if line.endswith("1\n")))
    result = runner.invoke(app, ["train", str(folder), "--out", run, *SMALL])
    found = "as trained, not calibrated: the validation queries are all true, and 2 validation facts and 2 corruptions"
    assert f"note: probabilities are {found} of them are too few" in result.stderr
    assert found in runner.invoke(app, ["predict", run, "liesIn(n5, ?)"]).stderr
    assert found in " ".join(invoke("explain", run, "liesIn(n5, north)").split())
    assert found in (tmp_path / "run" / "report.html").read_text()
    document = json.loads(invoke("evaluate", run, "--json"))
    assert document["protocol"]["calibration"].startswith(found)
    assert document["calibrated"] is None
