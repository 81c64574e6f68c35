"""How a question that is being typed may go on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.atom_text import facts_from_texts, written_atom, written_name
from r2n.data.encoding import encode_facts
from r2n.data.herbrand import HerbrandBase
from r2n.errors import DataError
from r2n.logic.language import Domain, Language, Predicate
from r2n.model.answers import Question
from r2n.model.questions import Completions, complete

COUNTRY, REGION = Domain("country"), Domain("region")
PLACE = Domain("place", parts=(COUNTRY, REGION))
LANGUAGE = Language.build(
    [COUNTRY, REGION, PLACE],
    [
        Predicate("locatedIn", (PLACE, REGION)),
        Predicate("neighborOf", (COUNTRY, COUNTRY)),
        Predicate("is big", (PLACE,)),
    ],
    {"country": ["italy", "ivory coast", "Iceland", 'the "other" one', "00260881"], "region": ["europe", "africa"]},
)


@pytest.mark.parametrize(
    ("text", "start", "texts"),
    [
        ("", 0, ("is big", "locatedIn", "neighborOf")),
        ("  loc", 2, ("locatedIn",)),
        ("IN", 0, ("locatedIn",)),
        ("is b", 0, ("is big",)),
        ('"is', 0, ("is big",)),
        ("nothing", 0, ()),
    ],
)
def test_predicates(text: str, start: int, texts: tuple[str, ...]) -> None:
    assert complete(LANGUAGE, text) == Completions(start, tuple(f"{written_name(name)}(" for name in texts))


@pytest.mark.parametrize(
    ("text", "start", "texts"),
    [
        ("locatedIn(i", 10, ("italy, ", '"ivory coast", ', "Iceland, ", "africa, ")),
        ("locatedIn(italy, ", 17, ("?)", "africa)", "europe)")),
        ("locatedIn(italy,", 16, ("?)", "africa)", "europe)")),
        ("locatedIn('ivory coast', e", 25, ("europe)",)),
        ("neighborOf(ivory c", 11, ('"ivory coast", ',)),
        ('neighborOf("ivory c', 11, ('"ivory coast", ',)),
        ("neighborOf(the ", 11, (r'"the \"other\" one", ',)),
        (r'neighborOf("the \"o', 11, (r'"the \"other\" one", ',)),
        ("neighborOf(002", 11, ("00260881, ",)),
        ('"is big"(eu', 9, ("europe)",)),
        ("neighborOf(italy, eu", 18, ()),
    ],
)
def test_constants_of_the_right_domain(text: str, start: int, texts: tuple[str, ...]) -> None:
    found = complete(LANGUAGE, text)
    assert found.start == start
    assert found.texts[: len(texts)] == texts
    if not texts:
        assert found.texts == ()


@pytest.mark.parametrize(
    "text",
    ["unknown(", "locatedIn(italy, europe, ", 'locatedIn("italy"', 'locatedIn(it"a', "locatedIn(italy, europe)", "!loc",
     "!locatedIn(", '"abc\\'],
)  # fmt: skip
def test_where_nothing_can_be_told(text: str) -> None:
    assert complete(LANGUAGE, text).texts == ()


def test_facts_have_no_question_mark_and_may_be_denied() -> None:
    assert complete(LANGUAGE, "locatedIn(italy, ", is_fact=True).texts == ("africa)", "europe)")
    assert complete(LANGUAGE, "!  loc", is_fact=True) == Completions(3, ("locatedIn(",))
    assert complete(LANGUAGE, "! locatedIn(italy, eu", is_fact=True).texts == ("europe)",)


def test_what_stands_behind_the_cursor_is_not_written_twice() -> None:
    assert complete(LANGUAGE, "loc(italy, ?)", 3) == Completions(0, ("locatedIn",))
    assert complete(LANGUAGE, "locatedIn(it, ?)", 12).texts == ("italy",)
    assert complete(LANGUAGE, "locatedIn(it  ", 12).texts == ("italy, ",)


def test_no_more_than_asked_for() -> None:
    assert len(complete(LANGUAGE, "", most=2).texts) == 2
    assert len(complete(LANGUAGE, "locatedIn(", most=3).texts) == 3


NAMES = st.lists(
    st.one_of(
        st.text(alphabet="aA\"'\\,()?! .:n\n\té/-", max_size=5),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        st.sampled_from(["light blue", "a, b", "p(a)", "?", "!", "", "rule", "2nd", "\\n", "x\u2028y"]),
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@st.composite
def languages(draw: st.DrawFn) -> Language:
    domains = [Domain("d"), Domain("e")]
    predicates = [
        Predicate(name, tuple(draw(st.lists(st.sampled_from(domains), min_size=1, max_size=3)))) for name in draw(NAMES)
    ]
    return Language.build(domains, predicates, {"d": draw(NAMES), "e": draw(NAMES)})


def is_question(base: HerbrandBase, text: str) -> bool:
    try:
        return len(Question.parse(base, text)) > 0
    except DataError:
        return False


def begins_a_question(base: HerbrandBase, text: str) -> bool:
    """Whether something makes a question of it; tried with `?` for all that is missing."""
    ends = ["", *(f"{first}{', ?' * more})" for first in ("", "?", "(?") for more in range(3))]
    return any(is_question(base, text + end) for end in ends)


@st.composite
def typed_atoms(draw: st.DrawFn) -> tuple[Language, str, int]:
    """A language, an atom of it as text, and a place in that text."""
    language = draw(languages())
    predicate = draw(st.sampled_from(language.predicates))
    members = [[language.constants[i] for i in language.members(domain)] for domain in predicate.domains]
    text = draw(st.sampled_from(["", " "])) + written_atom(predicate.name, [draw(st.sampled_from(m)) for m in members])
    return language, text, draw(st.integers(0, len(text)))


@given(typed_atoms(), st.booleans())
def test_every_completion_begins_a_question(typed: tuple[Language, str, int], is_cut: bool) -> None:
    language, text, cursor = typed
    text = text[:cursor] if is_cut else text
    found, base = complete(language, text, cursor), HerbrandBase(language)
    assert found.start <= cursor
    for insertion in found.texts:
        assert begins_a_question(base, text[: found.start] + insertion), insertion


@given(typed_atoms())
def test_who_takes_the_completions_comes_to_the_atom(typed: tuple[Language, str, int]) -> None:
    language, text, cursor = typed
    found = complete(language, text[:cursor], most=1_000)
    ways = [(text[: found.start] + insertion).replace(" ", "") for insertion in found.texts]
    if ways:
        assert any(text.replace(" ", "").startswith(way) for way in ways)
    else:
        assert text[cursor - 1] in '")\\'  # a name is whole, or the cursor is within an escape


@given(typed_atoms())
def test_a_completed_fact_is_a_fact(typed: tuple[Language, str, int]) -> None:
    language, text, _ = typed
    encoded, _ = encode_facts(HerbrandBase(language), facts_from_texts([text]))
    assert len(encoded.codes) == 1
    assert HerbrandBase(language).parts(encoded.codes)[0][0] in {predicate.name for predicate in language.predicates}


@given(st.text(max_size=12), st.integers(0, 12), st.booleans())
def test_any_text_is_taken(text: str, cursor: int, is_fact: bool) -> None:
    cursor = min(cursor, len(text))
    assert 0 <= complete(LANGUAGE, text, cursor, is_fact=is_fact).start <= cursor


@pytest.mark.parametrize("text", ["{}loc", "{}!{}'", 'locatedIn(italy{}"', "locatedIn(italy{}x"])
def test_a_long_run_of_space_is_read_once(text: str) -> None:
    """Read in every way that there is, 100,000 spaces would take minutes."""
    typed = text.replace("{}", " " * 100_000)
    assert complete(LANGUAGE, typed).start >= len("locatedIn(")
