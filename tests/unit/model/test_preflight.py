"""What cannot work, or takes long, is said before a training."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

from r2n.cli import app
from r2n.data.candidates import Candidates
from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.datasets.benchmarks import load
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.logic.parser import parse_theory
from r2n.model.choices import choose_options
from r2n.model.preflight import Work, cost_warnings, measured_speed, mining_notes, preflight_warnings
from r2n.options import GroundingOptions, Options
from tests.candidate_problem import things_problem

THEORY = """\
domain person
predicate parent(person, person) closed
predicate grandparent(person, person)
predicate kin(person, person)
rule two_steps: parent(x, y) & parent(y, z) -> grandparent(x, z)
rule chain: kin(x, y) & kin(y, z) -> kin(x, z)
"""


def facts(*rows: tuple[str, str, str]) -> Table:
    head, predicate, tail = zip(*rows, strict=True)
    return Table(pa.table({"head": head, "predicate": predicate, "tail": tail}))


def problem(test: list[tuple[str, str, str]], *more: tuple[str, str, str], theory: str = THEORY) -> Problem:
    known = [("ada", "parent", "ben"), ("ben", "parent", "cleo"), *more]
    return Problem.build("family", parse_theory(theory), [facts(*known)], {"test": [facts(*test)]})


def told(found: Problem, *changes: str) -> str:
    return "\n".join(preflight_warnings(found, Options().changed(changes)))


def check(found: Problem, *expected: tuple[str, tuple[str, ...]]) -> None:
    """With the changes (space between them), the warnings have these texts; without any text, there is no warning."""
    for changes, texts in expected:
        text = told(found, *changes.split())
        assert all(part in text for part in texts), (changes, text)
        assert texts or not text, (changes, text)


KNOWN_BODY, BACKWARD, COUNTED = "grounding.strategy=known-body", "grounding.strategy=backward", "model.rules=counted"
KIN = ("ada", "kin", "ben"), ("ben", "kin", "cleo")


def test_a_rule_with_the_asked_predicate_in_its_body_under_known_body() -> None:
    asked = problem([("ada", "kin", "cleo")], *KIN, ("ada", "grandparent", "cleo"))
    text = "1 of 2 rules has a predicate that is asked in its body (chain: kin)"
    silent = (f"{KNOWN_BODY} training.batch_size=1", f"{KNOWN_BODY} {COUNTED}", "", f"{KNOWN_BODY} model.layers=0")
    check(asked, (KNOWN_BODY, (text, "training.batch_size")), *((change, ()) for change in (*silent, BACKWARD)))


def test_rules_that_conclude_nothing_asked_or_labelled() -> None:
    wrong = THEORY + "".join(f"rule w{i}: parent(x, y) -> kin(y, x)\n" for i in range(5))
    asked = problem([("ada", "kin", "cleo")], *KIN, theory=wrong)
    text = "6 of 7 rules (two_steps, w0, w1, ...): none of the ground rules concludes a query or a labelled atom"
    assert text in told(asked, COUNTED)
    assert text in told(asked, KNOWN_BODY)
    assert "conclude" not in told(problem([("ada", "kin", "cleo")], *KIN, ("ada", "grandparent", "cleo")), COUNTED)


def mined_problem(rules: str) -> Problem:
    dice = np.random.default_rng(0)
    pairs = {(f"c{a}", f"c{b}") for a, b in dice.integers(60, size=(200, 2)).tolist() if a != b}
    names = ("r0", "r1", "r2", "r3")
    rows = [facts(*((a, name, b) for a, b in sorted(pairs) for name in names))]
    theory = "domain d\n" + "".join(f"predicate {name}(d, d)\n" for name in names) + rules
    asked = facts(
        *((f"c{i}", name, f"c{i + 1}") for i in range(20) for name in names if (f"c{i}", f"c{i + 1}") not in pairs)
    )
    return Problem.build("alike", parse_theory(theory), rows, {"test": [asked]})


def test_rules_that_the_facts_bear_out_are_advised_where_few_are_given() -> None:
    (text,) = mining_notes(mined_problem("rule one: r0(x, y) -> r1(x, y)\n"))
    assert "finds 11 rules with a confidence of 50% or more that the theory does not state" in text
    assert "r2n mine P --out FILE.r2n" in text
    every = "".join(f"rule a{i}{j}: r{i}(x, y) -> r{j}(x, y)\n" for i in range(4) for j in range(4) if i != j)
    assert mining_notes(mined_problem(every)) == []
    assert mining_notes(mined_problem("")) == []  # to take rules at all is another choice


@pytest.mark.parametrize("strategy", ["known-body", "backward"])
def test_no_query_is_reached(strategy: str) -> None:
    change = f"grounding.strategy={strategy}"
    asked = problem([("cleo", "grandparent", "ada")], ("ada", "grandparent", "cleo"))
    check(asked, (change, (f"no ground rule reaches any of the 1 query 'test' ({strategy})",)))
    two = [("cleo", "grandparent", "ada"), ("ada", "grandparent", "cleo")]
    check(problem(two, ("ben", "grandparent", "ada"), *KIN, ("ada", "kin", "cleo")), (change, ()))
    likes = f"{THEORY}predicate likes(person, person)"
    asked = problem([("ada", "likes", "ben")], ("ben", "likes", "ada"), theory=likes)
    check(asked, ("", ("no ground rule reaches any of the 1 query 'test' (full)",)))


def test_an_asked_predicate_of_which_nothing_open_is_known() -> None:
    nothing = "{} is asked, and no open atom of it is known"
    check(problem([("ada", "grandparent", "cleo")]), ("", (nothing.format("grandparent"),)))
    asked = problem([("cleo", "parent", "ada")], ("ada", "kin", "ben"))
    check(asked, ("", ("1 of 1 query 'test' is closed: what is no fact of parent is false",)))
    assert "parent is asked" not in told(asked)
    bare = Problem.build("family", parse_theory(THEORY), [facts(("ada", "parent", "ben"), ("ben", "parent", "cleo"))])
    check(bare, ("", ("a training has nothing to learn from",)), ("training.ask_closed=true", ()))
    theory = "domain town, region\ndomain place = town | region\npredicate in(place, place) closed(region, region)\n"
    rows = facts(("alps", "in", "europe"), ("andes", "in", "america"))
    domains = {"town": ["chur"], "region": ["alps", "andes", "europe", "america"]}
    queries = {"test": [facts(("chur", "in", "alps"))]}
    found = Problem.build("places", parse_theory(theory), [rows], queries, domains=domains)
    check(found, ("model.layers=0", (nothing.format("in"),)))


def test_what_would_take_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = problem([("ada", "kin", "cleo")], ("ada", "kin", "ben"))
    text = "rule 'chain' has 27 groundings, more than max_groundings = 5"
    check(budget, ("grounding.max_groundings=5", (text,)), ("", ()))
    asked = problem([("cleo", "grandparent", "ada")], ("ada", "grandparent", "cleo"), ("cleo", "kin", "ben"))
    check(asked, (KNOWN_BODY, ("rule 'chain' has no ground rule",)))
    monkeypatch.setattr("r2n.model.preflight.MOST_WORK", 1)
    monkeypatch.setattr("r2n.grounding.strategies.MOST_WORK", 1)
    check(asked, (KNOWN_BODY, ()))


def test_a_closed_body_predicate_without_a_fact() -> None:
    theory = THEORY.replace("kin(person, person)", "kin(person, person) closed")
    asked = problem([("ada", "grandparent", "cleo")], ("ben", "grandparent", "ada"), theory=theory)
    texts = (
        "rule 'chain' has no ground rule: kin is closed, and no fact of it is known",
        "add facts of kin to [facts] train, or take 'closed' from its declaration",
    )
    check(asked, *((change, texts) for change in ("", BACKWARD, COUNTED)), ("model.layers=0", ()))
    assert "two_steps" not in told(asked, BACKWARD)
    negative = f"{THEORY}predicate dead(person) closed\nrule alive: grandparent(x, y) & !dead(y) -> kin(x, y)\n"
    check(problem([("ada", "kin", "cleo")], KIN[0], ("ada", "grandparent", "ben"), theory=negative), ("", ()))
    rules = "".join(f"rule more{i}: dead(x) -> kin(x, x)\n" for i in range(5))
    many = problem([("ada", "kin", "cleo")], KIN[0], theory=f"{THEORY}predicate dead(person) closed\n{rules}")
    check(many, ("", ("5 rules (more0, more1, more2, ...) have no ground rule: dead is closed",)))
    assert len(told(many).splitlines()) == 1


def test_a_rule_without_ground_rule_under_the_strategy() -> None:
    asked = problem([("ada", "kin", "cleo")], *KIN)
    text = "rule 'two_steps' has no ground rule under backward grounding"
    check(asked, (BACKWARD, (text, "add facts or queries of grandparent")))
    assert "chain" not in told(asked, BACKWARD)
    asked = problem([("ada", "grandparent", "cleo")], ("ben", "grandparent", "ada"))
    missing = "rule 'chain' has no ground rule {}: no fact of kin is known"
    hint = "add facts of kin to [facts] train, or take grounding.strategy 'full'"
    known = KNOWN_BODY, (missing.format("under known-body grounding"), hint)
    check(asked, known, (COUNTED, (missing.format("where rules are counted"),)), ("", ()))


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
def test_a_rule_whose_body_no_facts_meet(strategy: str) -> None:
    """The facts of both predicates are there, and none of them follow one another."""
    theory = f"{THEORY}predicate boss(person, person) closed\nrule r: boss(x, y) & parent(y, z) -> kin(x, z)\n"
    known = [("dan", "boss", "cleo"), *KIN, ("ada", "grandparent", "cleo")]
    text = told(
        problem([("ada", "kin", "cleo")], *known, theory=theory),
        f"grounding.strategy={strategy}",
        "training.batch_size=1",
    )
    assert "rule 'r' has no ground rule: no facts meet its body" in text
    assert "chain" not in text
    assert "two_steps" not in text


CLUBS = parse_theory("domain person\ndomain club\npredicate member(person, club)\n")


def test_a_predicate_of_which_no_negative_can_be_drawn() -> None:
    rows = facts(("ada", "member", "chess"), ("ben", "member", "chess"))
    found = Problem.build("clubs", CLUBS, [rows], {"test": [facts(("cleo", "member", "chess"))]})
    texts = (
        "no negative of member can be drawn",
        "training would see only true atoms of it and learn that it is always true",
        "position -1 has one constant (club)",
        "training.corrupted_positions",
    )
    last, none = "training.corrupted_positions=[-1]", "training.corrupted_positions=[]"
    check(found, (last, texts), ("", ()), (f"{last} grounding.reciprocal=true", ()), (none, texts[:1]))
    labelled = Table(pa.table({"a": ["ada", "ben"], "b": ["chess", "chess"], "label": [1, 0]}), "member")
    check(Problem.build("clubs", CLUBS, [labelled]), (none, ()))


def test_splits_that_are_empty_or_trained_on() -> None:
    nothing = Table(pa.table({"head": pa.array([], pa.string()), "tail": pa.array([], pa.string())}), "kin")
    theory, known = parse_theory(THEORY), facts(("ada", "kin", "ben"), ("ben", "parent", "cleo"))
    asked, with_valid = [facts(("ada", "kin", "cleo"))], "training.with_valid=true"
    found = Problem.build("family", theory, [known], {"valid": [nothing], "test": asked})
    check(found, ("", ("the split 'valid' holds no query: add rows to its table, or leave it out of [queries]",)))
    bare = Problem.build("family", theory, [], {"test": asked})
    check(bare, ("", ("kin is asked, and no open atom of it is known",)))
    check(bare, (with_valid, ("training.with_valid changes nothing",)))
    check(Problem.build("empty", parse_theory("")), ("", ()))
    both = Problem.build("family", theory, [known], {"valid": asked})
    check(both, (with_valid, ("1 query of 'valid' used for training",)))
    assert "with_valid" not in told(both)


def test_a_rule_that_candidates_leave_without_a_ground_rule() -> None:
    labels = {("red_car", "blue_car"): True, ("red_bus", "old_tram"): False}
    found = things_problem(labels, {("blue_bus", "tram"): True, ("tram", "red_car"): False}, Candidates())
    said = " ".join(preflight_warnings(found, found.options))
    assert "rule 'transitive' has no ground rule: no atoms that are candidates of same meet in it" in said
    assert "right order" not in said


RECORDS_THEORY = """\
domain record
predicate same(record, record)
rule transitive: same(x, y) & same(y, z) -> same(x, z)
"""
HEADER = "a\tb\tlabel\n"
RECORDS_PROBLEM = """\
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
    (folder / "theory.r2n").write_text(RECORDS_THEORY)
    (folder / "train.tsv").write_text(HEADER + "".join(row for i, row in enumerate(rows) if i % 4))
    (folder / "test.tsv").write_text(HEADER + "".join(rows[::4]))
    (folder / "problem.toml").write_text(RECORDS_PROBLEM + more)
    return load(folder)


def sizes_of(problem: Problem, strategy: str) -> int:
    grounder = make_grounder(GroundingOptions.model_validate({"strategy": strategy}))
    return len(grounder.ground(Store(problem.knowledge), problem.atoms))


def work_of(problem: Problem, *changes: str) -> Work:
    work = Work.from_knowledge(problem.knowledge, problem.options.changed(changes))
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


def chain_problem(variables: int, constants: int) -> Problem:
    """One rule, a chain over so many variables: constants ** variables ground rules."""
    body = " & ".join(f"near(x{i}, x{i + 1})" for i in range(variables - 1))
    theory = f"domain d\npredicate near(d, d)\nrule r: {body} -> near(x0, x0)\n"
    return Problem.from_facts([("near", f"c{i}", f"c{(i + 1) % constants}") for i in range(constants)], theory=theory)


def test_what_grounding_refuses_is_not_timed() -> None:
    problem = chain_problem(variables=90, constants=3)
    assert cost_warnings(problem, problem.options) == []
    assert any("grounding is refused" in text for text in preflight_warnings(problem, problem.options))


def test_a_rule_of_many_variables_is_timed() -> None:
    fixed, _ = measured_speed(work_of(chain_problem(variables=70, constants=1), "model.dim=4", "model.layers=1"))
    assert fixed > 0


def test_candidates_are_named_only_where_they_can_be_taken(tmp_path: Path) -> None:
    """Where all labels are true, to be a candidate would be to be true; words that texts share are another way."""
    problem = records_problem(tmp_path / "records", 207, false=False)
    (text,) = cost_warnings(problem, problem.options)
    assert "candidates" not in text
    (tmp_path / "records" / "texts.tsv").write_text(
        "id\ttext\n" + "".join(f"r{i}\tname{i // 3} street{i // 3} of {i}\n" for i in range(207))
    )
    more = f'{RECORDS_PROBLEM}[features.record]\ntable = "texts.tsv"\ntext = "text"\n'
    (tmp_path / "records" / "problem.toml").write_text(more)
    (text,) = cost_warnings(described := load(tmp_path / "records"), described.options)
    assert "shared_words = 2 under [candidates.same] in the problem file (" in text
    (tmp_path / "records" / "problem.toml").write_text(f"{more}[candidates.same]\nshared_words = 2\n")
    blocked = load(tmp_path / "records")
    assert f"shared_words = 2 under [candidates.same] in the problem file ({sizes_of(blocked, 'full'):,})" in text


def test_the_predicted_seconds_grow_with_the_ground_rules(tmp_path: Path) -> None:
    large, small = (work_of(records_problem(tmp_path / str(size), size)) for size in (200, 100))
    assert large.size.count == 8 * small.size.count
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    assert measured_speed(large)[1] > 0
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_steps_may_each_go_through_all_ground_rules(tmp_path: Path) -> None:
    problem = records_problem(tmp_path / "records", 207)
    full, steps = work_of(problem), work_of(problem, "training.batch_size=20")
    assert (full.steps, steps.steps) == (1, -(-len(problem.train) // 20))
    assert steps.operations == steps.steps * full.operations
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
    options = choose_options(problem, problem.options)[0]
    assert preflight_warnings(problem, options) == cost_warnings(problem, options) == []


def test_check_and_train_say_it_before_the_work(tmp_path: Path) -> None:
    records_problem(tmp_path / "records", 207, '[grounding]\nstrategy = "full"\n[model]\nlayers = 3\n')
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "records")])
    assert "warning: the training takes about" in checked.stderr
    refused = ["--out", str(tmp_path / "run"), "--set", "training.patience=20"]
    trained = CliRunner().invoke(app, ["train", str(tmp_path / "records"), *refused])
    assert trained.exit_code == 2
    assert trained.stderr.index("warning: the training takes") < trained.stderr.index("queries to validate on")


@pytest.mark.parametrize(("head", "is_named"), [("leaves(y)", False), ("leaves(w)", True), ("leaves(x)", False)])
def test_a_variable_of_the_head_alone_is_named(head: str, is_named: bool) -> None:
    theory = f"""domain person
        predicate manages(person, person) closed
        predicate leaves(person)
        rule follow: manages(x, y) & leaves(x) -> {head}"""
    problem = Problem.from_facts([("manages", "ann", "bob"), ("leaves", "ann")], theory=theory)
    found = [text for text in preflight_warnings(problem, problem.options) if "concludes something of every w" in text]
    assert bool(found) == is_named
