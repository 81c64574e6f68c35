"""Graphs to mine: random small ones with every oddity, and a larger one with planted rules."""

import numpy as np
from hypothesis import strategies as st

import r2n
from r2n.data.knowledge_base import KnowledgeBase

THEORY = """\
domain low = {a, b, c}
domain high = {d, e}
domain all = low | high
predicate p(all, all)
predicate q(low, all)
predicate r(high, low)
predicate u(low)
"""


def knowledge_of(
    theory: str, facts: dict[str, np.ndarray], false: dict[str, np.ndarray] | None = None
) -> KnowledgeBase:
    built = KnowledgeBase.build(r2n.parse_theory(theory))
    codes: dict[int, bool] = {}
    for truth, given in ((False, false or {}), (True, facts)):
        for name, rows in given.items():
            for code in built.base.encode(built.language.predicate(name), np.asarray(rows, np.int64)).tolist():
                assert code >= 0
                codes[code] = truth
    atoms = np.array(sorted(codes), np.int64)
    evidence = r2n.Evidence(atoms, np.array([codes[code] for code in atoms.tolist()], bool))
    return KnowledgeBase(built.theory, built.language, evidence)


def random_knowledge(seed: int, density: float, theory: str = THEORY) -> KnowledgeBase:
    """Random facts, loops among them, some of them false, at least one true."""
    rng = np.random.default_rng(seed)
    language = KnowledgeBase.build(r2n.parse_theory(theory)).language
    true, false = {}, {}
    for predicate in language.predicates:
        grid = np.meshgrid(*(language.members(domain) for domain in predicate.domains), indexing="ij")
        rows = np.stack([part.ravel() for part in grid], axis=1)
        dice = rng.random(len(rows))
        true[predicate.name] = rows[dice < density]
        false[predicate.name] = rows[dice > 0.9]
    first = language.predicates[0].name
    true[first] = np.concatenate([true[first], [[0, 1]]])
    return knowledge_of(theory, true, false)


def knowledge_bases() -> st.SearchStrategy[KnowledgeBase]:
    """Five constants in two domains and their union, sparse to full."""
    densities = st.sampled_from([0.1, 0.3, 0.6, 0.9])
    return st.builds(random_knowledge, st.integers(0, 2**20), densities)


def planted_graph(seed: int = 0, constants: int = 300) -> KnowledgeBase:
    """Random b, c, d, e, n; and by rules with noise: s = b turned round, t = c after d, v = d after e turned round."""
    rng = np.random.default_rng(seed)
    base = {name: rng.integers(0, constants, (400, 2)) for name in "bcden"}
    base = {name: rows[rows[:, 0] != rows[:, 1]] for name, rows in base.items()}
    planted = {
        "s": base["b"][:, ::-1],
        "t": _composed(base["c"], base["d"]),
        "v": _composed(base["d"], base["e"][:, ::-1]),
    }
    noisy = {name: _with_noise(rows, rng, constants) for name, rows in planted.items()}
    names = ", ".join(f"k{i:03d}" for i in range(constants))
    theory = f"domain k = {{{names}}}\n" + "".join(f"predicate {name}(k, k)\n" for name in "bcdenstv")
    return knowledge_of(theory, base | noisy)


def _composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The pairs of two relations, one after the other, whose three constants differ."""
    pairs = [(x, y) for x, z in first for w, y in second if z == w and len({x, y, z}) == 3]
    return np.array(sorted(set(pairs)))


def _with_noise(rows: np.ndarray, rng: np.random.Generator, constants: int) -> np.ndarray:
    """Nine in ten of the rows, and one more in ten at random."""
    kept = rows[rng.random(len(rows)) < 0.9]
    return np.concatenate([kept, rng.integers(0, constants, (len(rows) // 10, 2))])


def noise_graph(seed: int = 0, constants: int = 100) -> KnowledgeBase:
    rng = np.random.default_rng(seed)
    names = ", ".join(f"k{i:03d}" for i in range(constants))
    theory = f"domain k = {{{names}}}\n" + "".join(f"predicate {name}(k, k)\n" for name in "abcde")
    return knowledge_of(theory, {name: rng.integers(0, constants, (300, 2)) for name in "abcde"})
