"""A thousand images, each with a digit somewhere; the digits of 500 are known."""

from pathlib import Path

import numpy as np

from examples.digits import draw_digits, put_anywhere, write_images, write_labels

SIDE = 10
SPLITS = {"train": range(500), "valid": range(500, 600), "test": range(600, 1000)}


def make_data(folder: Path, seed: int) -> None:
    """Write images.parquet, and the digits of three groups of images: train.tsv, valid.tsv and test.tsv."""
    generator = np.random.default_rng(seed)
    images, digits = draw_digits(generator, max(part.stop for part in SPLITS.values()))
    folder.mkdir(parents=True, exist_ok=True)
    write_images(folder / "images.parquet", put_anywhere(generator, images, SIDE))
    for split, numbers in SPLITS.items():
        write_labels(folder / f"{split}.tsv", numbers, digits)
