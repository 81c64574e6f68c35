"""Symbols: declarations and rules as a theory file writes them."""

import re

from r2n.logic.formula import printed_name
from r2n.logic.language import Domain, Predicate

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\w+(\()?')


def annotated(text: str, types: dict[str, str]) -> str:
    """The text of a formula with `: domain` behind the first occurrence of each annotated variable."""
    waiting = dict(types)

    def annotate(match: re.Match[str]) -> str:
        word = match.group()
        if word.startswith('"') or match.group(1) or word not in waiting:
            return word
        return f"{word}: {printed_name(waiting.pop(word))}"

    return _WORD.sub(annotate, text)


def printed_domain(domain: Domain) -> str:
    """A domain's declaration as a theory file writes it."""
    name = printed_name(domain.name)
    if domain.parts:
        return f"domain {name} = {' | '.join(printed_name(part.name) for part in domain.parts)}"
    if domain.listed is not None:
        return f"domain {name} = {{{', '.join(map(printed_name, domain.listed))}}}"
    return f"domain {name}"


def printed_predicate(predicate: Predicate) -> str:
    """A predicate's declaration as a theory file writes it, without the keyword."""
    domains = ", ".join(printed_name(domain.name) for domain in predicate.domains)
    closed = " closed" if predicate.closed else ""
    for part in predicate.closed_parts:
        closed += f" closed({', '.join(printed_name(domain.name) for domain in part)})"
    return f"{printed_name(predicate.name)}({domains}){closed}"
