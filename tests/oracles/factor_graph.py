"""Factor graphs by plain loops: which atoms there are, and what lies within so many steps of some of them."""

Row = tuple[int, ...]


def atoms_of(ground_rules: list[list[Row]], extra: list[int]) -> list[int]:
    """The codes of a graph: those of the ground rules and those asked for, each once, ascending."""
    return sorted({code for per_rule in ground_rules for row in per_rule for code in row} | set(extra))


def reach(neighbours: list[list[Row]], start: set[int], steps: int) -> list[set[int]]:
    """The atoms within 0, 1, ..., `steps` steps of the start, where a ground rule joins all its atoms."""
    reached = [set(start)]
    for _ in range(steps):
        now = set(reached[-1])
        for per_rule in neighbours:
            for row in per_rule:
                if any(atom in reached[-1] for atom in row):
                    now |= set(row)
        reached.append(now)
    return reached


def touching(per_rule: list[Row], atoms: set[int]) -> list[Row]:
    """The ground rules that hold at least one of the atoms, in order."""
    return [row for row in per_rule if any(atom in atoms for atom in row)]
