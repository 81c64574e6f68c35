"""Images of handwritten digits, from scikit-learn, as constants with features; and a small network that reads them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from torch import nn


def draw_digits(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """So many different images, as rows of 8 x 8 grey values from 0 to 1, and their digits."""
    images, digits = map(np.asarray, load_digits(return_X_y=True))
    chosen = generator.permutation(len(digits))[:count]
    return images[chosen] / 16, digits[chosen]


def put_anywhere(generator: np.random.Generator, images: np.ndarray, side: int) -> np.ndarray:
    """The same images, of 8 x 8, each at a random place of an empty one of side x side."""
    room = np.zeros((len(images), side, side))
    corners = generator.integers(side - 8 + 1, size=(len(images), 2))
    for wide, image, (top, left) in zip(room, images, corners, strict=True):
        wide[top : top + 8, left : left + 8] = image.reshape(8, 8)
    return room.reshape(len(images), -1)


def name(number: int) -> str:
    """The constant that an image is."""
    return f"i{number:04}"


def write_images(path: Path, images: np.ndarray) -> None:
    """A table with a column of names and one of lists of grey values."""
    names = [name(number) for number in range(len(images))]
    pq.write_table(pa.table({"image": names, "pixels": images.astype(np.float32).tolist()}), path)


def write_labels(path: Path, numbers: range, digits: np.ndarray) -> None:
    """The facts digit(image, value) of some images."""
    path.write_text("".join(f"{name(number)}\tdigit\t{digits[number]}\n" for number in numbers))


def small_cnn(side: int = 8, dim: int = 32) -> nn.Sequential:
    """From rows of side x side grey values to vectors: two convolutions, and a linear map."""
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * (side // 4) ** 2, dim),
    )
