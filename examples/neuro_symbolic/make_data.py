"""Three hundred images of digits in pairs: of every pair the sum is known, of 30 images the digit too."""

from pathlib import Path

import numpy as np

from examples.digits import draw_digits, name, write_images, write_labels

SPLITS = {"train": range(30), "valid": range(30, 130), "test": range(130, 300)}


def make_data(folder: Path, seed: int) -> None:
    """Write images.parquet, sums.tsv, plus.tsv, and the digits of three groups of images.

    Every image is in one pair. The sum of a pair is known in whichever group its images are; the digits of the groups
    valid and test are never in the facts.
    """
    generator = np.random.default_rng(seed)
    count = max(part.stop for part in SPLITS.values())
    images, digits = draw_digits(generator, count)
    folder.mkdir(parents=True, exist_ok=True)
    write_images(folder / "images.parquet", images)
    for split, numbers in SPLITS.items():
        write_labels(folder / f"{split}.tsv", numbers, digits)
    pairs = generator.permutation(count).reshape(-1, 2)
    both_ways = [*pairs, *pairs[:, ::-1]]
    sums = [f"{name(x)}\t{name(y)}\t{digits[x] + digits[y]}\n" for x, y in both_ways]
    (folder / "sums.tsv").write_text("".join(sums))
    table = [f"{v}\t{w}\t{v + w}\n" for v in range(10) for w in range(10)]
    (folder / "plus.tsv").write_text("".join(table))
