"""JSON objects as columns of text."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.tables import Table, read_facts
from r2n.errors import DataError
from tests.examples import at_most
from tests.oracles.fact_tables import listed, read_records


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@at_most(40, "each writes and reads files")
@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, st.text(max_size=4))), min_size=1, max_size=4)
    )
)
def test_any_names_and_any_text(objects: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        array = read_records(write(Path(folder) / "t.json", json.dumps(objects)))
        lines = read_records(write(Path(folder) / "t.jsonl", "\n\n".join(map(json.dumps, objects))))
    for records in (array, lines):
        assert records.names == tuple(objects[0])
        columns = [column.to_pylist() for column in records.columns]
        assert columns == [[item[name] for item in objects] for name in objects[0]]
    assert array.rows.tolist() == list(range(len(objects)))
    assert lines.rows.tolist() == list(range(0, 2 * len(objects), 2))


def test_names_that_look_like_paths(tmp_path: Path) -> None:
    item = {"a": {"b": "wrong"}, "a/b": "1", "~1": "2", "/": "3", "$.a": "4", "0": "5", "": "6", 'q"': "7", "*": "8"}
    records = read_records(write(tmp_path / "t.json", json.dumps([item])))
    assert records.names == tuple(item)
    assert [column.to_pylist() for column in records.columns[1:]] == [[value] for value in list(item.values())[1:]]


def test_values_that_are_not_text_and_dates_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", ' [{"a": 1, "b": 2.50, "c": true, "d": "2020-1-1T00:00", "e": null}]')
    assert [column.to_pylist() for column in read_records(path).columns] == [
        ["1"],
        ["2.5"],
        ["true"],
        ["2020-1-1T00:00"],
        [None],
    ]


def test_a_json_file_may_hold_one_object_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '{"a": "x"}\n{"a": "y"}\n')
    assert read_records(path).columns[0].to_pylist() == ["x", "y"]
    assert read_records(path).locate(1).line == 2


def test_nothing(tmp_path: Path) -> None:
    assert read_facts(Table(write(tmp_path / "t.json", "[]"))).facts == ()


def test_a_missing_field_is_an_empty_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"a": "x", "b": "y"}\n{"b": "z"}\n')
    with pytest.raises(DataError) as caught:
        read_facts(Table(path, "p"))
    assert str(caught.value).startswith(f'{path}:2: column 1 (a) is empty\n  | {{"b": "z"}}\n')
    assert len(read_facts(Table(path, "p"), on_error="skip").rejected) == 1


def test_names_in_order_of_first_sight(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"c": "1"}\n{"b": "2", "c": "3"}\n{"a": "4"}\n')
    assert read_records(path).names == ("c", "b", "a")


def test_a_line_that_is_no_object(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"a": "x"}\n\n["y"]\n{"a": \nnull\n{"a": "z"}\n')
    with pytest.raises(DataError) as caught:
        read_facts(Table(path, "p"))
    assert str(caught.value) == (
        f'{path}:3: this is not a JSON object\n  | ["y"]\n'
        '  write one object a line, as in {"head": CONSTANT, "relation": PREDICATE, "tail": CONSTANT}'
    )
    read = read_facts(Table(path, "p"), on_error="skip")
    assert listed(read) == [("p", ("x",), True), ("p", ("z",), True)]
    assert [error.where and error.where.line for error in read.rejected] == [3, 4, 5]


def test_an_item_that_is_no_object(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '[{"a": "x"}, "y", null]')
    with pytest.raises(DataError, match=r"t\.json, row 2: this is not a JSON object"):
        read_facts(Table(path, "p"))
    assert len(read_facts(Table(path, "p"), on_error="skip").rejected) == 2


def test_broken_array(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '[{"a": "x"},\n {"a": "é" "b"}]')
    with pytest.raises(DataError) as caught:
        read_records(path)
    assert str(caught.value) == (
        f"{path}:2:12: this is not JSON: expecting ',' delimiter\n"
        '  |  {"a": "é" "b"}]\n'
        "  |            ^\n"
        "  the file is damaged or cut short: write it again"
    )


@pytest.mark.parametrize("text", [r'[{"a": "\ud800"}]', "[" * 100_000])
def test_what_pythons_json_cannot_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t\.json: this cannot be read as JSON \("):
        read_records(write(tmp_path / "t.json", text))


def test_objects_that_share_no_field_are_refused_where_they_are_many(tmp_path: Path) -> None:
    few = write(tmp_path / "few.jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(20)))
    assert len(read_records(few).columns) == 20
    many = write(tmp_path / "many.jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(1_100)))
    with pytest.raises(DataError, match="1,208,900 cells would be empty"):
        read_records(many)


def test_a_number_beyond_what_python_reads_beside_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.json", '[{"a": ' + "9" * 5_000 + "}, x]")
    with pytest.raises(DataError, match="JSON"):
        read_records(path)


def test_objects_without_fields_are_told_not_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.jsonl", "{}\n{}")
    with pytest.raises(DataError, match=r"facts.jsonl:1: there is nothing in the row"):
        read_facts(Table(path))
    rows = read_facts(Table(path), on_error="skip")
    assert not rows.facts
    assert len(rows.rejected) == 2


@pytest.mark.parametrize("layout", ["[{}, {}]", "{}\n{}"])
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ('{"a": "x", "b": "y", "a": "z"}', "the key 'a' is given twice"),
        ('{"a": "x", "b": "y", "\\u0062": "z"}', "the key 'b' is given twice"),
        ('{"a": ["x"], "b": "y"}', 'column 1 \\(a\\) holds a list, no constant: \\["x"\\]'),
        ('{"a": "x", "b": {"c": 1}}', "column 2 \\(b\\) holds an object, no constant"),
        ('{"a": 123456789012345678901, "b": "x"}', "last digits"),
    ],
)
def test_what_is_no_constant_is_refused_with_its_row(layout: str, wrong: str, what: str, tmp_path: Path) -> None:
    text = layout.replace("{}", '{"a": "x", "b": "y"}', 1).replace("{}", wrong)
    place = "row 2" if layout.startswith("[") else "t.json:2"
    with pytest.raises(DataError, match=f"{place}: .*{what}|{place}: {what}"):
        read_facts(Table(write(tmp_path / "t.json", text), "p"))


def test_numbers_are_texts_as_in_other_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", '[{"a": 1.0, "b": 12345678901234567}, {"a": 1, "b": 1.5}, {"a": "1.0", "b": 2}]')
    (facts,) = read_facts(Table(path, "p")).facts
    assert [column.to_pylist() for column in facts.arguments] == [["1", "1", "1.0"], ["12345678901234567", "1.5", "2"]]
