"""Predictions -> a run: what a training would need of memory, estimated before it is taken."""

from collections.abc import Callable
from dataclasses import dataclass

from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.counting import split_rules
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import ModelOptions, Options
from r2n.runs.memory import FIXED_BYTES, check_memory, over_grids, training_bytes
from r2n.training.negatives import count_negatives

BYTES_OF_ROW_SCORE = 20  # a score, its exponential, its gradients
BYTES_OF_VECTOR = 40  # of each complex component: two numbers, their squares in the optimiser, gradients, a best copy
BYTES_OF_WEIGHT = 24  # a number, its gradient, two moments of the optimiser, a best copy, a checkpoint
BYTES_OF_GRID_ATOM = 400  # logits and their gradients: measured on UMLS: 0.5 GB for 1.7 million atoms


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The most bytes that a training may need; None: a share of what is free."""

    most: int | None = None

    def check_atoms(self, knowledge: KnowledgeBase, options: Options) -> None:
        """Refuse atoms and weights that would not fit, before a negative is drawn or a network made."""
        self._check_asked(knowledge, options)
        self._check_weights(knowledge, options.model)

    def _check_asked(self, knowledge: KnowledgeBase, options: Options) -> None:
        """Refuse atoms that would not fit."""
        fewer, negatives = "draw fewer negatives: set training.negatives to 1 or more", 0
        ways_out = [fewer, "ask less at once: set training.batch_size", "set model.dim lower"]
        if options.training.batch_size is not None:
            self._check_rows(knowledge, options)
            return  # a batch is checked by its graph
        if options.training.loss == "full-softmax":
            atoms, what = knowledge.base.size, "full-softmax over the whole Herbrand base, {:,} atoms,"
            ways_out = ["take loss = 'softmax' with training.negatives", "set model.dim lower"]
        else:
            facts = len(knowledge.evidence)
            share = min(1.0, (options.training.batch_size or facts) / max(1, facts))
            negatives = round(share * count_negatives(knowledge.base, knowledge.evidence, options.training))
            atoms, what = round(share * facts) + negatives, "a training on {:,} facts and negatives"
        if over_grids(options):
            needed = FIXED_BYTES + atoms * BYTES_OF_GRID_ATOM
        else:
            needed = _bytes(options, atoms, negatives=negatives)
        check_memory(needed, self.most, what=what.format(atoms), ways_out=ways_out)

    def _check_weights(self, knowledge: KnowledgeBase, options: ModelOptions) -> None:
        """Refuse a network too large to be made."""
        weights = count_weights(knowledge, options)
        ways_out = ["set model.dim, model.rule_dim or model.encoder_dim lower"]
        if options.has_layers:
            ways_out += ["set model.layers lower", 'set model.rule_network = "shared"']
        what = f"a network of about {weights:,} weights"
        check_memory(FIXED_BYTES + weights * BYTES_OF_WEIGHT, self.most, what=what, ways_out=ways_out)

    def _check_rows(self, knowledge: KnowledgeBase, options: Options) -> None:
        """Refuse rows of a batch that would not fit: scores of all candidates, their gradients, and all vectors."""
        training, constants = options.training, len(knowledge.language.constants)
        compared = constants if training.loss == "full-softmax" else min(constants, training.negatives or constants)
        scores = min(training.batch_size or 1, len(knowledge.evidence)) * compared
        needed = FIXED_BYTES + scores * BYTES_OF_ROW_SCORE + constants * options.model.dim * BYTES_OF_VECTOR
        ways_out = ["set training.batch_size lower", "set model.dim lower"]
        check_memory(needed, self.most, what=f"a step that compares {scores:,} candidates", ways_out=ways_out)

    def for_graph(self, options: Options) -> Callable[[FactorGraph], None]:
        """Refuses a training graph that would not fit, before it is laid out."""

        def check(graph: FactorGraph) -> None:
            if over_grids(options) and None not in graph.shapes:
                return  # the atoms were checked before, and nothing is laid out rule by rule
            positions = sum(part.numel() for part in graph.neighbours)
            needed = _bytes(options, len(graph.atoms), ground_rules=len(graph), positions=positions)
            what = f"the training graph of {len(graph.atoms):,} atoms and {len(graph):,} ground rules"
            ways_out = [
                "draw fewer negatives: set training.negatives",
                "set model.dim or model.layers lower",
                "ground less: known-body or backward grounding, or typed and closed predicates",
            ]
            check_memory(needed, self.most, what=what, ways_out=ways_out)

        return check


def count_weights(knowledge: KnowledgeBase, options: ModelOptions) -> int:
    """About how many numbers a network learns: vectors of constants and predicates, and its linear maps.

    Maps from words, whose number is not known before texts are read, are left out.
    """
    dim, language = options.dim, knowledge.language
    found = 2 * dim * (len(language.constants) + len(language.predicates))
    if options.input == "mlp":
        found += sum((predicate.arity + 1) * dim * dim for predicate in language.predicates)
    if knowledge.features:
        found += (options.encoder_dim or dim) * dim
    return found + (_layer_weights(knowledge, options) if options.has_layers else 0)


def _layer_weights(knowledge: KnowledgeBase, options: ModelOptions) -> int:
    """Of the reasoning layers, as `make_layer` makes them, and of the outputs."""
    rules = split_rules(knowledge)[0].theory.rules if options.rules == "counted" else knowledge.theory.rules
    dim, hidden = options.dim, options.rule_dim or options.dim
    sizes = [len(rule.atoms) for rule in rules]
    inner = hidden * hidden if options.mlp == "deep" else 0
    found = 2 * len(rules) * hidden if options.rule_network == "shared" else 0
    for positions in set(sizes) if options.rule_network == "shared" else sizes:
        copies = 1 if options.reasoner == "fgnn" else positions
        found += copies * dim * hidden + inner + copies * (inner + hidden * dim)
    outputs = (dim * dim if options.output == "mlp" else dim) + hidden * hidden
    return found * (1 if options.shared_layers else options.layers) + outputs


def _bytes(options: Options, atoms: int, *, ground_rules: int = 0, positions: int = 0, negatives: int = 0) -> int:
    model = options.model
    return training_bytes(
        atoms,
        ground_rules,
        positions,
        model.dim,
        model.layers if model.has_layers else 0,
        negatives=negatives,
        input=model.input,
        rule_outputs=options.training.semantic_weight > 0,
        mlp=model.mlp,
        aggregation=model.aggregation,
    )
