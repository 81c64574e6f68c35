"""problem.toml: what is read, and what is refused."""

from pathlib import Path

import pytest

from r2n.data.problem import read_problem_file
from r2n.errors import ConfigError
from r2n.options import Options


def read(tmp_path: Path, text: str | bytes) -> object:
    path = tmp_path / "problem.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_problem_file(path)


def test_a_table_may_be_a_name_options_or_a_list(tmp_path: Path) -> None:
    text = 'facts.train = ["a.tsv", {file = "b.csv", predicate = "p", columns = ["x"], header = true}]'
    file = read_problem_file_of(tmp_path, text)
    assert [table.file for table in file.facts.train] == ["a.tsv", "b.csv"]
    assert file.facts.train[1].columns == ("x",)


def read_problem_file_of(tmp_path: Path, text: str):
    path = tmp_path / "problem.toml"
    path.write_text(text)
    return read_problem_file(path)


def test_bom_and_crlf_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_bytes(b'\xef\xbb\xbfname = "a"\r\n[grounding]\r\nwidth = 3\r\n')
    file = read_problem_file(tmp_path / "problem.toml")
    assert (file.name, file.grounding.width) == ("a", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[grounding]\nwidht = 1\n",
            "problem.toml:2:1: unknown key 'widht' in \\[grounding\\](.|\n)*did you mean 'width'",
        ),
        ("nam = 1\n", "problem.toml:1:1: unknown key 'nam'(.|\n)*did you mean 'name'"),
        ("[facts]\ntrain = {fil = 'x'}\n", "unknown key 'fil'|file: field required"),
        ("[grounding]\nwidth = -1\n", "problem.toml:2:1: grounding.width: input should be greater"),
        ("[grounding]\nstrategy = 'ful'\n", "grounding.strategy: input should be 'full', 'known-body' or 'backward'"),
        ("[model]\nlayers = 'three'\n", "model.layers"),
        ("[grounding\n", "problem.toml:1:\\d+: not valid TOML"),
        ("", "is empty"),
        (b"name = '\xff'\n", "not UTF-8"),
    ],
)
def test_wrong_files_are_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no problem file"):
        read_problem_file(tmp_path / "problem.toml")


def test_assignments_change_options() -> None:
    changed = Options().changed(["model.layers=2", "training.loss=softmax", "training.corrupted_positions=[-1, 0]"])
    assert (changed.model.layers, changed.training.loss, changed.training.corrupted_positions) == (
        2,
        "softmax",
        (-1, 0),
    )
    assert Options().model.layers == 3


@pytest.mark.parametrize("assignment", ["layers=2", "model.layers", "modl.layers=2"])
def test_what_is_no_assignment_is_refused(assignment: str) -> None:
    with pytest.raises(ConfigError, match="is no assignment"):
        Options().changed([assignment])
    with pytest.raises(ConfigError, match="unknown key 'layer' in \\[model\\]\n  did you mean 'layers'"):
        Options().changed(["model.layer=2"])


def test_a_table_may_say_its_format(tmp_path: Path) -> None:
    file = read_problem_file_of(tmp_path, 'facts.train = {file = "facts.txt", format = "prolog"}')
    assert file.facts.train[0].format == "prolog"
    with pytest.raises(ConfigError, match=r"facts.train.format: input should be(.|\n)*did you mean 'prolog'"):
        read(tmp_path, 'facts.train = {file = "facts.txt", format = "prologue"}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 5_000, "nested too deep"),
        ("x = " + "{a = " * 5_000, "nested too deep"),
        ("[model]\ndim = " + "9" * 5_000, "a number has too many digits"),
        ("[model]\ndim = 0x" + "f" * 5_000, "model.dim: input should be"),
        ("[grounding]\nstrategy = 0x" + "f" * 5_000, "grounding.strategy: input should be"),
        ("\n[" + "a." * 5_000 + "a]", r"problem.toml:2: a key has more than 100 parts"),
        ("'a' . " * 20_000 + "a = 1", "a key has more than 100 parts"),
    ],
)
def test_what_python_itself_refuses_to_read(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_an_assignment_of_too_many_digits_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model.dim: input should be"):
        Options().changed(["model.dim=" + "9" * 5_000])
