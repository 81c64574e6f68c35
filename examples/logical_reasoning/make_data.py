"""Who can read which project in a company of fifty people."""

from pathlib import Path

import numpy as np

PEOPLE, TEAMS, PROJECTS = 50, 10, 12
SHARES = {"train": 30, "valid": 10, "test": 10}  # people whose rights are known, and are asked


def make_data(folder: Path, seed: int) -> None:
    """Write facts.tsv, the unary tables, and rights of three groups of people: train.tsv, valid.tsv and test.tsv.

    Who is in a team can read what the team owns, and who stands in for somebody what that person can read; but a
    contractor never reads what is secret, nor hands it on.
    """
    generator = np.random.default_rng(seed)
    member = np.zeros((PEOPLE, TEAMS), bool)
    member[np.arange(PEOPLE), generator.integers(TEAMS, size=PEOPLE)] = True
    owns = np.zeros((TEAMS, PROJECTS), bool)
    owns[generator.permutation(np.arange(PROJECTS) % TEAMS), np.arange(PROJECTS)] = True
    boss = np.array([-1, *(generator.integers(i) for i in range(1, PEOPLE))])  # a forest: always somebody before
    boss[generator.random(PEOPLE) < 0.4] = -1
    contractor, secret = generator.random(PEOPLE) < 0.4, generator.random(PROJECTS) < 0.4
    can_read = member @ owns
    for x in range(PEOPLE):
        if boss[x] >= 0:
            can_read[x] |= can_read[boss[x]]
        can_read[x] &= ~(contractor[x] & secret)
    names = generator.permutation(PEOPLE)  # the order of names says nothing
    person, team, project = (lambda i: f"p{names[i]:02}"), (lambda i: f"team{i}"), (lambda i: f"project{i:02}")
    folder.mkdir(parents=True, exist_ok=True)
    facts = [f"{person(x)}\tmemberOf\t{team(t)}\n" for x, t in np.argwhere(member)]
    facts += [f"{team(t)}\towns\t{project(p)}\n" for t, p in np.argwhere(owns)]
    facts += [f"{person(x)}\tstandsInFor\t{person(boss[x])}\n" for x in np.flatnonzero(boss >= 0)]
    (folder / "facts.tsv").write_text("".join(facts))
    (folder / "contractors.tsv").write_text("".join(f"{person(x)}\n" for x in np.flatnonzero(contractor)))
    (folder / "secrets.tsv").write_text("".join(f"{project(p)}\n" for p in np.flatnonzero(secret)))
    bounds = np.cumsum(list(SHARES.values()))[:-1]
    for split, people in zip(SHARES, np.split(generator.permutation(PEOPLE), bounds), strict=True):
        rows = [(x, p) for x in sorted(people) for p in range(PROJECTS)]
        lines = [f"{person(x)}\tcanRead\t{project(p)}\t{int(can_read[x, p])}\n" for x, p in rows]
        (folder / f"{split}.tsv").write_text("".join(lines))
