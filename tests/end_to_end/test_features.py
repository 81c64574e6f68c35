"""Features and rules together, on data of our own: the page in docs/features.md, run as it stands."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import r2n
from r2n.cli import app
from r2n.errors import CheckpointError, ConfigError
from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.network.constant_embedding import WordChannel
from r2n.options import Options

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
GROUPS = ("kettle steel litre", "lamp desk bright", "chair oak tall", "phone black small", "pan iron deep")
HELD_OUT = "3"  # of each group, the product with this number


def block(language: str, opening: str) -> str:
    """The code of the page in a language, by how it begins."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if text.startswith(opening)]
    assert len(found) == 1
    return found[0]


def write_products(folder: Path) -> Path:
    """Four products of each kind; the pairs with the last of each kind are asked."""
    rng = np.random.default_rng(0)
    rows, names = ["id,title,price,weight"], []
    for kind, words in enumerate(GROUPS):
        for number in "0123":
            kept = [word for word in words.split() if rng.random() < 0.8] or [words.split()[0]]
            title = " ".join([f"brand{kind % 2}", *kept, f"only{kind}{number}"])
            price, weight = 10 * kind + rng.normal(0, 1), 5 - kind + rng.normal(0, 0.2)
            names.append(f"k{kind}n{number}")
            rows.append(f'{names[-1]},"{title}, new",{price:.2f},{weight:.2f}')
    (folder / "products.csv").write_text("\n".join(rows))
    known, asked = ["head,relation,tail,label"], ["head,relation,tail,label"]
    for x in names:
        for y in names:
            truths = {"same": x[1] == y[1], "sameMaker": int(x[1]) % 2 == int(y[1]) % 2}
            for predicate, truth in truths.items():
                is_asked = HELD_OUT in (x[3], y[3])
                if is_asked or rng.random() < 0.5:
                    (asked if is_asked else known).append(f"{x},{predicate},{y},{int(truth)}")
    (folder / "pairs.csv").write_text("\n".join(known))
    (folder / "asked.csv").write_text("\n".join(asked))
    (folder / "theory.r2n").write_text(block("text", "domain product"))
    (folder / "problem.toml").write_text(block("toml", "theory"))
    return folder


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_products(tmp_path_factory.mktemp("products"))


def test_fifteen_lines_of_python_learn_from_text_numbers_and_rules(
    products: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(products)
    code = block("python", "import r2n")
    assert len([line for line in code.splitlines() if line.strip() and "import" not in line]) <= 15
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(code, names)
    assert len(capsys.readouterr().out.splitlines()) == 40
    assert names["report"].metrics["ap"] > 0.9
    characters = next(m for m in names["model"].modules() if isinstance(m, WordChannel))
    assert {"kett", " br", "d1 ", "y02 "} <= set(characters.bags.vocabulary)
    assert not {gram for gram in characters.bags.vocabulary if gram.startswith("y") and gram.endswith(f"{HELD_OUT} ")}


def bars(number: int) -> dict[str, np.ndarray]:
    """Images of one bar, upright or not, with noise."""
    rng = np.random.default_rng(7)
    images = {}
    for i in range(number):
        image = rng.normal(0, 0.2, (1, 8, 8))
        place = rng.integers(0, 8)
        image[(0, slice(None), place) if i % 2 else (0, place, slice(None))] += 2
        images[f"i{i}"] = image
    return images


@pytest.mark.slow
def test_an_image_encoder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    theory = r2n.parse_theory(
        "domain image\npredicate upright(image)\npredicate alike(image, image)\n"
        "rule one: upright(x) & alike(x, y) -> upright(y)\nrule two: alike(x, y) -> alike(y, x)\n"
        "rule three: upright(x) & upright(y) -> alike(x, y)\n"
    )
    images = bars(60)
    labels = {name: int(name[1:]) % 2 for name in images}

    def table(chosen: list[str]) -> list[r2n.Table]:
        pairs = [(x, y) for x in chosen for y in chosen[::5]]
        unary = {"x": chosen, "label": [labels[name] for name in chosen]}
        binary = {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]}
        binary["label"] = [int(labels[x] == labels[y]) for x, y in pairs]  # pyright: ignore
        return [r2n.Table(pa.table(unary), predicate="upright"), r2n.Table(pa.table(binary), predicate="alike")]

    names: dict[str, Any] = {
        "r2n": r2n,
        "theory": theory,
        "images": images,
        "facts": table(list(images)[:44]),
        "queries": table(list(images)[44:]),
    }
    exec(block("python", "import torch"), names)
    problem, model, net = names["problem"], names["model"], names["Net"]
    made = [m for m in model.network.modules() if isinstance(m, net)]
    before = {name: value.clone() for name, value in made[0].state_dict().items()}
    sections = {"model": {"input": "pair", "dim": 8, "layers": 1}, "training": {"epochs": 30, "hiding": 0.1}}
    options = Options.model_validate(sections).changed(["training.corrupted_positions=[]"])
    run = prepare_run(problem, options, 0, encoders={"image": made[0]})
    for _ in train_in(tmp_path / "run", run, checkpoint_seconds=0.0):
        pass
    assert run.evaluate("test").metrics["ap"] > 0.9
    assert any(not torch.equal(value, before[name]) for name, value in made[0].state_dict().items())
    torch.manual_seed(5)
    again = Model.load(tmp_path / "run", encoders={"image": net()})
    np.testing.assert_array_equal(again.logits(problem.atoms), run.logits()(problem.atoms))
    with pytest.raises(ConfigError, match=r"load\(folder, encoders=\{'image': module\}\)"):
        Model.load(tmp_path / "run")
    with pytest.raises(CheckpointError, match="does not fit its network"):
        Model.load(tmp_path / "run", encoders={"image": nn.Flatten()})
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert "give them again: load(folder, encoders=" in result.stderr
    with pytest.raises(ConfigError, match="encoders are given for other domains"):
        Model.load(tmp_path / "run", encoders={"image": net(), "word": net()})
