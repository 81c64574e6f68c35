"""Inputs that are nearly right: changes of a seed, drawn by Hypothesis (which can shrink them) or by dice (atheris)."""

from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LONGEST = 30_000
TIMES = (2, 3, 10, 100, 1_000, 20_000)
ANYWHERE = (
    *(b"", b"\x00", b"\n", b"\r\n", b"\t", b" ", b'"', b"'", b"\\", b"(", b")", b"[", b"]", b"{", b"}", b",", b":"),
    *(b"0", b"-1", b"1e999", b"nan", b"9223372036854775808", b"9" * 5_000, b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"),
    *("é".encode(), "\u202e".encode(), "\u2028".encode(), "\u00b2".encode(), "\U0001d4af".encode(), b"[/]", b"[red]"),
    *(b"%s", b"{0}"),
)
BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"!", b""))


def _flipped(piece: bytes) -> bytes:
    """The piece with a bit of its first byte changed."""
    return bytes([(piece or b"\0")[0] ^ 1 << len(piece) % 8]) + piece[1:]


def _bounded(times: int, piece: bytes) -> int:
    return min(times, max(1, LONGEST // max(1, len(piece))))


Change = Callable[[bytes, bytes, bytes, bytes, int], bytes]
KINDS: tuple[Change, ...] = (  # before, piece and after in the content; a text; how many times
    lambda before, piece, after, text, times: before + text + piece + after,
    lambda before, piece, after, text, times: before + text + after,
    lambda before, piece, after, text, times: before + after,
    lambda before, piece, after, text, times: before,
    lambda before, piece, after, text, times: piece + before + after,
    lambda before, piece, after, text, times: before + _flipped(piece) + after,
    lambda before, piece, after, text, times: before + (piece or text) * _bounded(times, piece or text) + after,
    *(
        lambda before, piece, after, text, times, pair=pair: before + pair[0] * times + piece + pair[1] * times + after
        for pair in BRACKETS
    ),
)


def inputs(seeds: Sequence[bytes], tokens: Sequence[bytes]) -> SearchStrategy[bytes]:
    def changed(content: bytes, dice: Random) -> bytes:
        return thrown(content, seeds, tokens, dice, TIMES[:-1])  # the longest are among the hard inputs

    return st.builds(changed, st.sampled_from([*seeds]), st.randoms(use_true_random=False))


def thrown(
    content: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes], dice: Random, times: Sequence[int] = TIMES
) -> bytes:
    """A few changes at random places; long inputs are rare, because they take long."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 5))):
        pool = dice.choice((tokens, tokens, ANYWHERE, seeds))
        number = times[min(dice.randrange(40), dice.randrange(40)) * len(times) // 40]
        start = dice.randrange(len(content) + 1)
        end = start + dice.randrange(41)
        text = dice.choice([*pool] or [b""])
        content = dice.choice(KINDS)(content[:start], content[start:end], content[end:], text, number)[:LONGEST]
    return content
