"""Problems: from folders and from tables."""

from pathlib import Path

import pandas as pd
import pytest

import r2n
from r2n.data.problem import Problem, load_problem
from r2n.data.tables import Table
from r2n.errors import ConfigError, DataError
from tests.toy_problem import write_toy_problem


def test_a_folder_and_its_file_are_the_same_problem(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    by_folder, by_file = load_problem(folder), load_problem(folder / "problem.toml")
    assert by_folder.name == by_file.name == "towns"
    assert by_folder.train.atoms.tolist() == by_file.train.atoms.tolist()
    assert (len(by_folder.train), len(by_folder.valid), len(by_folder.test)) == (44, 4, 4)
    assert len(by_folder.atoms) == 52
    assert by_folder.options.model.dim == 8


def test_duplicates_are_counted_once(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    with (folder / "train.tsv").open("a") as file:
        file.write("n0\tliesIn\tnorth\n" * 2)
    problem = load_problem(folder)
    assert dict(problem.report.duplicates) == {"train": 2, "valid": 0, "test": 0}
    assert len(problem.train) == 44


def test_a_fact_both_true_and_false_names_both_lines(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    (folder / "more.tsv").write_text("n1\tliesIn\tsouth\t0\nn0\tliesIn\tnorth\t0\n")
    text = (folder / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace('"train.tsv"', '["train.tsv", "more.tsv"]'))
    with pytest.raises(DataError, match="liesIn\\(n0, north\\) is stated both true and false") as caught:
        load_problem(folder)
    assert "more.tsv:2" in str(caught.value)
    assert "train.tsv:1" in str(caught.value)


def test_overlap_between_splits_is_an_error(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    with (folder / "test.tsv").open("a") as file:
        file.write("n0\tliesIn\tnorth\t1\nn2\tliesIn\tnorth\t1\n")
    with pytest.raises(DataError, match="1 atom of split 'test' stands in split 'train' too") as caught:
        load_problem(folder)
    assert "test.tsv:5" in str(caught.value)


def test_wrong_rows_are_collected_when_asked(tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    with (folder / "train.tsv").open("a") as file:
        file.write("n0\tliesOn\tnorth\nn0\tliesIn\n")
    with pytest.raises(DataError):
        load_problem(folder)
    problem = load_problem(folder, on_error="skip")
    assert len(problem.report.rejected) == 2
    assert len(problem.train) == 44


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no such file"), (b"\n\n", "empty"), (b"north\n\xff\xfe", "valleys.txt:2")],
)
def test_domain_files(content: bytes | None, message: str, tmp_path: Path) -> None:
    folder = write_toy_problem(tmp_path / "towns")
    with (folder / "problem.toml").open("a") as file:
        file.write('[domains]\nvalley = "valleys.txt"\ntown = ["n0"]\n')
    if content is not None:
        (folder / "valleys.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_problem(folder)


def test_frames_make_a_problem_without_files() -> None:
    frame = pd.DataFrame({"head": ["ann", "bob"], "relation": ["knows", "knows"], "tail": ["bob", "cy"]})
    theory = r2n.parse_theory("rule r: knows(x, y) -> knows(y, x)\n")
    problem = Problem.build("friends", theory, [Table(frame)], {"test": []})
    assert problem.knowledge.language.constants == ("ann", "bob", "cy")
    assert len(problem.test) == len(problem.valid) == 0


@pytest.mark.parametrize(("split", "instead"), [("train", "facts="), ("background", "background=")])
def test_queries_take_no_name_of_what_is_known(split: str, instead: str) -> None:
    frame = pd.DataFrame({"head": ["a"], "relation": ["p"], "tail": ["b"]})
    with pytest.raises(ConfigError, match=f"queries cannot be called '{split}'") as caught:
        Problem.build("x", r2n.Theory(), [Table(frame)], {split: [Table(frame)]})
    assert instead in str(caught.value.hint)


def test_empty_cells_are_counted_where_they_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,city\nann,rome\nbob,\ncid,\n")
    (tmp_path / "problem.toml").write_text(
        '[facts]\ntrain = { file = "people.csv", predicate = "livesIn", header = true, empty = "skip" }\n'
    )
    problem = load_problem(tmp_path)
    assert len(problem.train) == 1
    assert problem.report.empty == (("train", 2),)
