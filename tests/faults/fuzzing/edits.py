"""Inputs that are nearly right: changes of a seed, by Hypothesis (which can shrink them) or by dice (for atheris)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LONGEST = 30_000
TIMES = (2, 3, 10, 100, 1_000, 20_000)
PLACES = 2**16
ANYWHERE = (
    *(b"", b"\x00", b"\n", b"\r\n", b"\t", b" ", b'"', b"'", b"\\", b"(", b")", b"[", b"]", b"{", b"}", b",", b":"),
    *(b"0", b"-1", b"1e999", b"nan", b"9223372036854775808", b"9" * 5_000, b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"),
    *("é".encode(), "\u202e".encode(), "\u2028".encode(), "\u00b2".encode(), "\U0001d4af".encode(), b"[/]", b"[red]"),
    *(b"%s", b"{0}"),
)


@dataclass(frozen=True)
class Edit:
    """A change at a place (a share of the content) of so many bytes, with a text."""

    kind: str
    place: int
    length: int
    text: bytes
    times: int = 2

    def applied(self, content: bytes) -> bytes:
        start = self.place * (len(content) + 1) // PLACES
        return KINDS[self.kind](content, start, min(len(content), start + self.length), self)[:LONGEST]


def _flip(content: bytes, start: int, end: int, edit: Edit) -> bytes:
    flipped = bytes([content[start] ^ 1 << edit.length % 8]) if start < len(content) else edit.text
    return content[:start] + flipped + content[start + 1 :]


def _repeat(content: bytes, start: int, end: int, edit: Edit) -> bytes:
    piece = content[start:end] or edit.text
    times = min(edit.times, max(1, LONGEST // max(1, len(piece))))
    return content[:start] + piece * times + content[end:]


def _nest(content: bytes, start: int, end: int, edit: Edit) -> bytes:
    opening, closing = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"!", b""))[edit.length % 4]
    return content[:start] + opening * edit.times + content[start:end] + closing * edit.times + content[end:]


KINDS: dict[str, Callable[[bytes, int, int, Edit], bytes]] = {
    "insert": lambda content, start, end, edit: content[:start] + edit.text + content[start:],
    "replace": lambda content, start, end, edit: content[:start] + edit.text + content[end:],
    "delete": lambda content, start, end, edit: content[:start] + content[end:],
    "cut": lambda content, start, end, edit: content[:start],
    "move": lambda content, start, end, edit: content[start:end] + content[:start] + content[end:],
    "flip": _flip,
    "repeat": _repeat,
    "nest": _nest,
}


def inputs(seeds: Sequence[bytes], tokens: Sequence[bytes]) -> SearchStrategy[bytes]:
    texts = st.one_of(st.sampled_from([*tokens, *ANYWHERE]), st.sampled_from([*seeds]), st.binary(max_size=8))
    edits = st.builds(
        Edit,
        st.sampled_from(sorted(KINDS)),
        st.integers(0, PLACES - 1),
        st.integers(0, 40),
        texts,
        st.sampled_from(TIMES[:-1]),  # the longest are among the hard inputs
    )
    return st.builds(applied, st.sampled_from([*seeds]), st.lists(edits, min_size=1, max_size=6))


def applied(content: bytes, edits: Sequence[Edit]) -> bytes:
    for edit in edits:
        content = edit.applied(content)
    return content


def thrown(content: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes], dice: Random) -> bytes:
    """The same by dice: long inputs are rare, for they take long."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 5))):
        pool = dice.choice((tokens, tokens, ANYWHERE, seeds))
        times = TIMES[min(dice.randrange(40), dice.randrange(40)) * len(TIMES) // 40]
        edit = Edit(
            dice.choice(sorted(KINDS)), dice.randrange(PLACES), dice.randrange(41), dice.choice([*pool] or [b""]), times
        )
        content = edit.applied(content)
    return content
