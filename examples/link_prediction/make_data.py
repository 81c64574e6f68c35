"""Trade between forty firms: who supplies whom, who is allied with whom, who invests in whom."""

from pathlib import Path

import numpy as np

FIRMS, SECTORS = 40, 5
STEPS = {"allied": 0, "supplies": 1, "investsIn": 2}  # along the ring of sectors
DENSITY, NOISE = 0.6, 0.01
SHARES = {"train": 0.7, "valid": 0.1, "test": 0.2}


def make_data(folder: Path, seed: int) -> None:
    """Write train.tsv, valid.tsv and test.tsv.

    Sectors stand in a ring. A firm is allied with firms of its own sector, supplies some of the next one, and invests
    in some of the one after. No table holds the sector of a firm; only the links depend on it.
    """
    generator = np.random.default_rng(seed)
    sector = generator.permutation(np.arange(FIRMS) % SECTORS)
    distance = (sector[None, :] - sector[:, None]) % SECTORS
    links: list[str] = []
    for relation, step in STEPS.items():
        drawn = generator.random((FIRMS, FIRMS)) < np.where(distance == step, DENSITY, NOISE)
        if step == 0:
            drawn = np.triu(drawn) | np.triu(drawn).T  # allied both ways
        np.fill_diagonal(drawn, False)
        links += [f"firm{x:02}\t{relation}\tfirm{y:02}\n" for x, y in np.argwhere(drawn)]
    order = generator.permutation(len(links))
    bounds = np.cumsum([round(share * len(links)) for share in SHARES.values()])[:-1]
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in zip(SHARES, np.split(order, bounds), strict=True):
        (folder / f"{split}.tsv").write_text("".join(links[i] for i in sorted(rows)))
