"""Where rules help and hurt: what separates the two is found, and on noise nothing is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.stats import fisher_exact

import r2n
from r2n.data.features import Features, read_features
from r2n.data.herbrand import HerbrandBase
from r2n.explanation.rules import FELT, LEVEL, SUPPORT, Marks, find_contexts

CITIES = tuple(f"c{i:02}" for i in range(40))
COLOURS = ("blue", "green", "red")


def base() -> HerbrandBase:
    theory = r2n.parse_theory(
        f"""
        domain city = {{{", ".join(CITIES)}}}
        domain colour = {{{", ".join(COLOURS)}}}
        domain thing = city | colour
        predicate likes(city, colour)
        predicate sees(city, thing)
        """
    )
    return HerbrandBase(r2n.KnowledgeBase.build(theory).language)


BASE = base()
TEXTS: Mapping[str, Features] = read_features(
    BASE.language, {"city": {city: "old town" if i % 2 else "new village" for i, city in enumerate(CITIES)}}
)[0]


def codes() -> np.ndarray:
    return np.arange(BASE.size)


def marks() -> Marks:
    return Marks.of(BASE, codes(), TEXTS)


def test_every_kind_of_mark_is_there() -> None:
    found = marks()
    named = set(zip(found.kinds, found.names, strict=True))
    assert ("predicate", "likes") in named
    assert ("domain", "colour at position 2 of sees") in named
    assert ("word", "village (city)") in named
    assert ("constant", "red") in named
    assert ("constant", "c00") in named
    order = [found.kinds.index(kind) for kind in ("predicate", "domain", "word", "constant")]
    assert order == sorted(order)


def test_marks_are_what_the_atoms_have() -> None:
    found, index = marks(), BASE.decode(codes())[0]
    names = BASE.names(codes())
    for kind, name in (("constant", "red"), ("constant", "c07"), ("predicate", "sees"), ("word", "town (city)")):
        column = found.has[
            :, [i for i, mark in enumerate(zip(found.kinds, found.names, strict=True)) if mark == (kind, name)]
        ]
        has = column.toarray()[:, 0] > 0
        for i, atom in enumerate(names):
            inside = atom[:-1].partition("(")[2].split(", ")
            if kind == "constant":
                assert has[i] == (name in inside)
            elif kind == "predicate":
                assert has[i] == (BASE.language.predicates[index[i]].name == name)
            else:
                assert has[i] == any(c in CITIES and CITIES.index(c) % 2 == 1 for c in inside)


def planted(where: np.ndarray, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    """A gain that is mostly positive somewhere, and mostly negative elsewhere."""
    dice = np.random.default_rng(seed)
    sign = np.where(where, 1, -1) * np.where(dice.random(len(where)) < noise, -1, 1)
    return sign * dice.uniform(2 * FELT, 1, len(where))


def test_what_separates_help_from_hurt_is_told_with_its_counts() -> None:
    red = np.array(["red" in name for name in BASE.names(codes())])
    gain = planted(red)
    first = find_contexts(marks(), {"r": gain})["r"][0]
    assert (first.kind, first.what, first.helps) == ("constant", "red", True)
    assert first.helped == int((gain > FELT)[red].sum())
    assert first.hurt == int((gain < -FELT)[red].sum())
    assert first.helped_elsewhere == int((gain > FELT)[~red].sum())
    assert first.hurt_elsewhere == int((gain < -FELT)[~red].sum())
    assert first.p < LEVEL
    other = find_contexts(marks(), {"r": -gain})["r"][0]
    assert (other.what, other.helps) == ("red", False)


def test_words_and_predicates_are_found_and_the_same_atoms_are_told_once() -> None:
    town = np.array(
        ["town" in TEXTS_BY_CITY[name[:-1].partition("(")[2].split(", ")[0]] for name in BASE.names(codes())]
    )
    found = find_contexts(marks(), {"r": planted(town)})["r"]
    assert (found[0].kind, found[0].what) == ("word", "old (city)")  # `town` marks the same atoms
    assert [context.what for context in found].count("town (city)") == 0
    sees = BASE.decode(codes())[0] == 1
    assert find_contexts(marks(), {"r": planted(sees)})["r"][0].kind == "predicate"


TEXTS_BY_CITY = dict(zip(CITIES, TEXTS["city"].texts or (), strict=True))


@pytest.mark.parametrize("atoms", [30, 200, 1500])
def test_on_noise_nothing_is_told(atoms: int) -> None:
    """Forty times ten rules whose gains have nothing to do with the atoms."""
    told = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        some = np.sort(dice.choice(BASE.size, atoms, replace=False))
        drawn = Marks.of(BASE, some, TEXTS)
        gains = {f"r{i}": dice.normal(size=atoms) * (dice.random(atoms) < 0.7) for i in range(10)}
        told += sum(map(len, find_contexts(drawn, gains).values()))
    assert told == 0


def test_few_atoms_are_never_told_and_unfelt_changes_count_nowhere() -> None:
    gain = np.zeros(BASE.size)
    gain[: SUPPORT - 1] = 1.0
    gain[-200:] = -FELT / 2
    assert find_contexts(marks(), {"r": gain}) == {"r": ()}
    assert find_contexts(Marks.of(BASE, codes()[:0], {}), {"r": gain[:0]}) == {"r": ()}
    assert find_contexts(marks(), {}) == {}


def test_the_chance_is_fishers() -> None:
    """No further from one side than scipy's test of both sides, times the number of tests."""
    red = np.array(["red" in name for name in BASE.names(codes())])
    gain = planted(red, noise=0.3)
    found = find_contexts(marks(), {"r": gain})["r"]
    tests = round(found[0].p / _two_sided(found[0]))
    assert 1 < tests < BASE.size
    for context in found:
        assert context.p == pytest.approx(_two_sided(context) * tests, rel=1e-6)
        table = [[context.helped, context.hurt], [context.helped_elsewhere, context.hurt_elsewhere]]
        assert context.p >= _fisher(table)


def _two_sided(context: object) -> float:
    table = [
        [getattr(context, name) for name in pair]
        for pair in (("helped", "hurt"), ("helped_elsewhere", "hurt_elsewhere"))
    ]
    sides = [_fisher(table, side) for side in ("less", "greater")]
    return min(1.0, 2 * min(sides))


def _fisher(table: list[list[int]], side: str = "two-sided") -> float:
    result: Any = fisher_exact(table, alternative=side)
    return float(result.pvalue)
