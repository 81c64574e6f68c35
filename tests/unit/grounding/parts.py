"""A grounding written in parts without Spark, as Spark would write it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r2n.grounding.cache import RuleParts, parts_of, write_manifest
from r2n.grounding.ground_rules import Grounding


def write_parts(grounding: Grounding, folder: Path, digest: str) -> None:
    """Each rule in two files, the first of them as long as it gets."""
    rules = []
    for i, part in enumerate(grounding.ground_rules):
        own = folder / f"rule={i}"
        own.mkdir(parents=True)
        half = (len(part) + 1) // 2
        for number, rows in enumerate((part.atoms[:half], part.atoms[half:])):
            columns = {f"a{j}": np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])}
            pq.write_table(pa.table(columns), own / f"part-{number}.parquet")
        rules.append(RuleParts(part.rule.name, own.name, parts_of(own), len(part), part.estimate, part.seconds))
    write_manifest(folder, digest, rules)
