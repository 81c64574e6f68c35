"""The command line from text to report: check, ground with every option, datasets; and how fast it starts."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.grounding.backward import BackwardGrounder
from r2n.logic.parser import parse_theory
from tests.command_line import document, run
from tests.oracles import grounding as oracle
from tests.oracles.grounding import World

THEORY = """\
domain country = {austria, france, italy}
domain region = {asia, europe}
domain place = country | region
predicate locatedIn(place, place)
predicate neighborOf(country, country) closed
rule manifold: neighborOf(x, y) & locatedIn(x, z: region) -> locatedIn(y, z)
implicit pair: [neighborOf(x, y), neighborOf(y, x)]
"""
TRAIN = "italy neighborOf france\nfrance neighborOf austria\nitaly locatedIn europe\n".replace(" ", "\t")
TEST = "france locatedIn europe 1\naustria locatedIn asia 0\n".replace(" ", "\t")
VALID = "austria locatedIn europe 1\n".replace(" ", "\t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "theory.r2n").write_text(THEORY)
    (tmp_path / "train.tsv").write_text(TRAIN)
    (tmp_path / "test.tsv").write_text(TEST)
    (tmp_path / "valid.tsv").write_text(VALID)
    (tmp_path / "problem.toml").write_text(
        'name = "towns"\ntheory = "theory.r2n"\n'
        '[facts]\ntrain = "train.tsv"\n[queries]\nvalid = "valid.tsv"\ntest = "test.tsv"\n'
        '[grounding]\nstrategy = "backward"\nwidth = 1\ndepth = 2\n'
    )
    return tmp_path


def test_ground_has_the_shape_that_others_rely_on(folder: Path) -> None:
    said = document("ground", folder)
    assert {"ground_rules", "atoms", "rules", "queries"} <= set(said)
    assert [rule["name"] for rule in said["rules"]] == ["manifold", "pair"]
    for rule in said["rules"]:
        assert {"name", "estimate", "ground_rules", "seconds"} <= set(rule)
        assert rule["estimate"] >= 0
        assert rule["ground_rules"] >= 0
        assert rule["seconds"] >= 0
    assert said["ground_rules"] == sum(rule["ground_rules"] for rule in said["rules"])
    assert set(said["queries"]) == {"reached", "unreached"}
    assert sum(said["queries"].values()) == 3


def world() -> World:
    theory = parse_theory(THEORY)
    facts = frozenset((row[1], row[0], row[2]) for row in (line.split("\t") for line in TRAIN.splitlines()))
    return World(theory, oracle.members_of(theory.domains, {}), facts)


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        (("--strategy", "full"), [4, 9]),
        (("--strategy", "known-body"), [1, 9]),
        (("--strategy", "backward", "--width", 0, "--depth", 1), [1, 0]),
        (("--strategy", "backward", "--width", 1, "--depth", 2), [2, 0]),
    ],
)
def test_ground_counts_as_loops_do(folder: Path, options: tuple[object, ...], counts: list[int]) -> None:
    asked = [("locatedIn", "france", "europe"), ("locatedIn", "austria", "asia"), ("locatedIn", "austria", "europe")]
    by_strategy = {
        "full": lambda: oracle.full(world()),
        "known-body": lambda: oracle.known_body(world()),
        "backward": lambda: oracle.backward(world(), asked, int(str(options[3])), int(str(options[5]))),
    }
    assert [len(rows) for rows in by_strategy[str(options[1])]()] == counts
    found = [rule["ground_rules"] for rule in document("ground", folder, *options)["rules"]]
    assert all(few <= many for few, many in zip(found, counts, strict=True))  # what no query feels is left out
    assert found[0] == counts[0]


def test_ground_takes_the_options_of_the_problem_and_those_given_win(folder: Path) -> None:
    assert document("ground", folder)["rules"][0]["ground_rules"] == 2
    assert document("ground", folder, "--depth", 1)["rules"][0]["ground_rules"] == 1


def test_ground_asks_one_split(folder: Path) -> None:
    assert document("ground", folder, "--queries", "valid")["queries"] == {"reached": 1, "unreached": 0}
    assert document("ground", folder, "--queries", "test")["queries"] == {"reached": 1, "unreached": 1}
    result = CliRunner().invoke(app, ["ground", str(folder), "--queries", "tset"])
    assert result.exit_code == 2
    assert "test" in result.stderr


def test_the_second_run_reads_what_the_first_has_written(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path_factory.mktemp("out")
    first = document("ground", folder, "--out", out)
    assert list(out.rglob("*.parquet"))

    def not_again(*_: object) -> None:
        raise AssertionError("grounded again")

    monkeypatch.setattr(BackwardGrounder, "ground", not_again)
    second = document("ground", folder, "--out", out)
    same = ("ground_rules", "atoms", "queries")
    assert [first[key] for key in same] == [second[key] for key in same]
    with pytest.raises(AssertionError, match="grounded again"):
        CliRunner().invoke(app, ["ground", str(folder), "--out", str(out), "--depth", "1"], catch_exceptions=False)


def test_a_changed_fact_is_grounded_anew(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out")
    before = document("ground", folder, "--out", out, "--strategy", "known-body")
    (folder / "train.tsv").write_text(TRAIN + "france\tlocatedIn\tasia\n")
    after = document("ground", folder, "--out", out, "--strategy", "known-body")
    assert after["ground_rules"] > before["ground_rules"]


def test_damaged_files_of_a_kept_grounding_never_show_a_traceback(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("out")
    first = document("ground", folder, "--out", out)
    for path in out.rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:10])
    result = CliRunner().invoke(app, ["ground", str(folder), "--out", str(out), "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 0:
        assert json.loads(result.stdout)["ground_rules"] == first["ground_rules"]
    else:
        assert result.exit_code == 2
        assert ".parquet" in result.stderr or str(out) in result.stderr


WITHOUT_TORCH = """
import sys
from r2n.cli import main
sys.argv = ["r2n", *{arguments}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("torch" in sys.modules, file=sys.stderr)
"""


def test_the_version_is_told() -> None:
    assert run("--version").strip() == f"r2n {r2n.__version__}"
