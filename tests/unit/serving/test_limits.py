"""What a request may take."""

from r2n.serving.limits import Limits


def test_every_limit_is_told_in_words() -> None:
    words = Limits(seconds=2.5, memory=7).words()
    assert [line.split("`")[1] for line in words.splitlines()] == list(Limits().to_dict())
    assert "2.5 seconds to compute an answer" in words
    assert "7 bytes of memory" in words


def test_what_stands_in_the_schemas_cannot_be_chosen() -> None:
    fixed = set(Limits().to_dict()) - set(Limits.settable())
    assert fixed == {"queries", "facts", "text", "answers"}
