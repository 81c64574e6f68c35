"""The claim of the example, and that its problem goes through with the built-in encoder and with one passed in."""

from pathlib import Path
from time import process_time

import pytest
import torch

from examples.classification.__main__ import CNN, EXAMPLE, comparison
from examples.classification.make_data import SPLITS, make_data
from examples.comparison import MOST_SECONDS, make_problem, trained
from examples.digits import small_cnn


def test_every_image_has_a_digit_in_one_split_alone(tmp_path: Path) -> None:
    make_data(tmp_path, 3)
    named = [line.split("\t")[0] for split in SPLITS for line in (tmp_path / f"{split}.tsv").read_text().splitlines()]
    assert len(named) == len(set(named)) == 1000


def test_the_cnn_takes_rows_of_pixels_and_is_trained_with_the_rest() -> None:
    torch.manual_seed(0)
    before = small_cnn()
    assert before(torch.zeros(5, 64)).shape == (5, 32)
    start = next(before.parameters())
    problem = make_problem(EXAMPLE, make_data, 10)
    assert not problem.knowledge.theory.rules
    run = trained(problem, 0, ["training.epochs=2"], CNN)
    encoder = next(module for module in run.model.modules() if isinstance(module, torch.nn.Conv2d))
    assert not torch.equal(encoder.weight, start)  # the same start, some steps later
    assert run.encoders == ("image",)


@pytest.mark.slow
def test_the_cnn_is_better_than_a_linear_model() -> None:
    start = process_time()
    found = comparison()
    assert process_time() - start < MOST_SECONDS
    assert len(found.figures["CNN"]) == 5
    assert found.holds(), "\n".join(found.lines())
