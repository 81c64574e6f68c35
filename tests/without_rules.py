"""A problem whose theory never had some rules, and a network over it with the weights that another has for the rest."""

from collections.abc import Collection
from dataclasses import replace

from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.network.r2n import R2N
from r2n.options import ModelOptions


def knowledge_without(knowledge: KnowledgeBase, names: Collection[str]) -> KnowledgeBase:
    rules = tuple(rule for rule in knowledge.theory.rules if rule.name not in names)
    return replace(knowledge, theory=replace(knowledge.theory, rules=rules))


def network_without(network: R2N, knowledge: KnowledgeBase, names: Collection[str], options: ModelOptions) -> R2N:
    """The network for the knowledge without the rules; `knowledge` has them all, as the network has."""
    rules = knowledge.theory.rules
    kept = [j for j, rule in enumerate(rules) if rule.name not in names]
    sizes = [len(rule.atoms) for rule in rules]
    if options.rule_network == "shared":
        groups = sorted(set(sizes))
        parts = [number for number, size in enumerate(groups) if any(sizes[j] == size for j in kept)]
    else:
        parts = kept
    made = R2N.build(knowledge_without(knowledge, names), options)
    made.to(network.constants.vectors.dtype)
    made.load_state_dict(
        dict(
            _renumbered(name, value, parts, kept)
            for name, value in network.state_dict().items()
            if _renumbered(name, value, parts, kept)[0]
        )
    )
    return made.eval()


def _renumbered(name: str, value: Tensor, parts: list[int], kept: list[int]) -> tuple[str, Tensor]:
    """A weight under its name in the other network; no name where it has no place there."""
    words = name.split(".")
    if words[0] == "layers" and words[2] in ("update_rule", "message_to_atoms"):
        if int(words[3]) not in parts:
            return "", value
        words[3] = str(parts.index(int(words[3])))
    if words[0] == "layers" and words[2] == "rule_embedding":
        value = value[kept]
    return ".".join(words), value
