"""Problems that defaults must read well: records with typos, by their characters, and a shop that ranks products."""

import re
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import r2n
from r2n.data.features import Token, bags_of_words, pair_counts

DOCS = Path(__file__).parents[2] / "docs" / "your-own-data.md"
FIRST = re.findall(
    r"\w+", "anna boris clara daniel elena felix greta hannah ivan julia karl lena martin nora oscar paula"
)
LAST = re.findall(r"\w+", "schmidt mueller garcia rossi novak jensen kowalski dubois silva andersson horvat popov")
STREETS = re.findall(r"\w+", "station market church garden river school mill forest")


def with_typo(word: str, dice: Random) -> str:
    i, letter = dice.randrange(len(word)), dice.choice("abcdefghijklmnopqrstuvwxyz")
    swapped = word[:i] + word[i : i + 2][::-1] + word[i + 2 :]
    return dice.choice(
        [word[:i] + word[i + 1 :], word[:i] + letter + word[i:], word[:i] + letter + word[i + 1 :], swapped]
    )


def records(dice: Random) -> dict[str, str]:
    """Three records of each of 70 people, `r4_0` to `r4_2` of the fifth."""
    texts: dict[str, str] = {}
    for person in range(70):
        words = [dice.choice(FIRST), dice.choice(LAST), dice.choice(STREETS), str(dice.randrange(1, 99))]
        for copy in range(3):
            own = [with_typo(word, dice) if dice.random() < 0.35 else word for word in words]
            own[0] = own[0][0] if dice.random() < 0.2 else own[0]
            texts[f"r{person}_{copy}"] = " ".join([own[1], own[0], *own[2:]] if dice.random() < 0.2 else own)
    return texts


def test_records_with_typos_are_resolved_better_than_by_string_similarity() -> None:
    dice = Random(0)
    texts = records(dice)
    pairs = [("same", a, b, a.split("_")[0] == b.split("_")[0]) for a, b in combinations(texts, 2)]
    alike = [pair for pair in pairs if not pair[3] and set(texts[pair[1]].split()) & set(texts[pair[2]].split())]
    true = [pair for pair in pairs if pair[3]]
    asked = [*true, *dice.sample(alike, 5 * len(true))]
    dice.shuffle(asked)
    half = len(asked) // 2
    theory, reached = "domain record\npredicate same(record, record)", {}
    for analyzer in (None, "word"):
        features = {"record": r2n.FeatureTable(texts, analyzer=analyzer)}
        problem = r2n.Problem.from_facts(asked[:half], theory, asked[half:], features=features)
        model = r2n.train(problem, seed=0, input="pair", layers=0, epochs=60)
        reached[analyzer] = model.evaluate("test").metrics["ap"]
    record = problem.knowledge.features["record"]
    first, second = np.searchsorted(record.constants, problem.knowledge.base.decode(problem.test.atoms)[1].T)

    def jaccard(token: Token, column: int) -> float:
        bags = bags_of_words(record.texts or (), np.ones(len(record), bool), token=token)
        return float(average_precision_score(problem.test.truth, pair_counts(bags, first, second)[:, column]))

    words, trigrams = jaccard("word", 2), jaccard("char", 0)
    assert reached[None] >= trigrams - 0.005, (reached, words, trigrams)
    assert trigrams > max(words, reached["word"]) + 0.1


def shop(seed: int) -> dict[str, Any]:
    """150 users buy six products each, of two categories above all, and the popular ones rather."""
    generator = np.random.default_rng(seed)
    category, popularity = generator.integers(6, size=60), generator.gamma(1.0, size=60) + 0.1
    bought = []
    for user in range(150):
        likes = generator.choice(6, 2, replace=False)
        weights = popularity * np.where(np.isin(category, likes), 8.0, 0.4)
        chosen = generator.choice(60, 6, replace=False, p=weights / weights.sum())
        bought += [(f"u{user}", f"p{product}") for product in chosen]
    sales = pd.DataFrame(bought, columns=["user", "product"]).sample(frac=1, random_state=seed)
    products = pd.DataFrame({"product": [f"p{i}" for i in range(60)], "category": [f"c{i}" for i in category]})
    return {"sales": sales[:630], "valid": sales[630:720], "test": sales[720:], "products": products}


def popularity_in_categories(sales: pd.DataFrame, others: list[pd.DataFrame], products: pd.DataFrame) -> float:
    """The mean reciprocal rank of the last of the others, by sales times the user's purchases in the category."""
    category = dict(products.itertuples(index=False))
    sold, known = dict(sales["product"].value_counts()), pd.concat([sales, *others])
    found = []
    for user, product in others[-1].itertuples(index=False):
        own = [category[item] for item in sales["product"][sales["user"] == user]]
        seen = set(known["product"][known["user"] == user]) - {product}
        scores = {item: sold.get(item, 0) * (own.count(category[item]) + 0.1) for item in category if item not in seen}
        values = np.array(list(scores.values()))
        above, equal = (values > scores[product]).sum(), (values == scores[product]).sum()
        found.append(1 / (above + (equal + 1) / 2))
    return float(np.mean(found))


def test_the_example_of_a_shop_ranks_products_for_users(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(import r2n\n\ntheory = .*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    names = shop(0)
    exec(compile(code, str(DOCS), "exec"), names)
    assert "position 2 (product)" in capsys.readouterr().out
    report = names["report"]
    assert report.metrics["mrr"] == report.by_position["position 2 (product)"]["mrr"]
    alone = popularity_in_categories(names["sales"], [names["valid"], names["test"]], names["products"])
    assert report.metrics["mrr"] >= alone - 0.02, alone
    every = r2n.Problem.from_facts({"bought": names["sales"]}, names["theory"], {"bought": names["test"]})
    assert every.ask == {}
