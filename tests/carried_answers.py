"""Ranking answers of which it is known which fact carries them: planted rules among rules that say next to nothing."""

from dataclasses import dataclass

import numpy as np

from r2n.data.problem import Problem

CARRIERS = {"owns": "owns(x, y) -> likes(x, y)", "asked": "asked(y, x) -> likes(x, y)"}
DISTRACTORS = ("saw", "met", "heard")
THEORY = "\n".join(
    [
        "domain person, thing",
        "predicate likes(person, thing)",
        "predicate owns(person, thing)",
        "predicate asked(thing, person)",
        *(f"predicate {name}(person, thing)" for name in DISTRACTORS),
        *(f"rule by_{name}: {rule}" for name, rule in CARRIERS.items()),
        *(f"rule by_{name}: {name}(x, y) -> likes(x, y)" for name in DISTRACTORS),
    ]
)


@dataclass(frozen=True)
class CarriedAnswers:
    """A problem, and the fact that carries each test answer."""

    problem: Problem
    carriers: dict[str, str]


def carried_answers(people: int, *, holds: float, seed: int = 0) -> CarriedAnswers:
    """Each person likes what is owned or asked for (`holds` of it is true), and has seen, met and heard much else.

    Of each test answer exactly one fact of `owns` or `asked` is known, next to facts of all distractors.
    """
    dice, things = np.random.default_rng(seed), people
    facts, asked, carriers = list[str](), list[str](), dict[str, str]()
    for person in range(people):
        chosen = dice.permutation(things)[:12].tolist()
        for number, thing in enumerate(chosen):
            who, what = f"p{person}", f"t{thing}"
            answer, is_test = f"likes({who}, {what})", number == 0
            carrier = f"owns({who}, {what})" if dice.random() < 0.5 else f"asked({what}, {who})"
            if number < 6:
                facts.append(carrier)
            if is_test:
                asked.append(answer)
                carriers[answer] = carrier
            elif number < 6 and dice.random() < holds:
                facts.append(answer)
            near = is_test or number >= 6
            facts += [f"{name}({who}, {what})" for name in DISTRACTORS if near or dice.random() < 0.1]
    half = len(asked) // 2
    queries = {"valid": asked[:half], "test": asked[half:]}
    return CarriedAnswers(Problem.from_facts(facts, theory=THEORY, queries=queries), carriers)
