"""The Relational Reasoning Network."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.validation import check_evidence_is_read
from r2n.errors import ConfigError, nearest
from r2n.grounding.counting import split_rules
from r2n.logic.theory import Rule
from r2n.network.collate import GraphBatch, Kind
from r2n.network.constant_embedding import ConstantEmbedding, Ids
from r2n.network.factor_graph import UNKNOWN, FactorGraph
from r2n.network.grid import Atoms, DenseGrid, InputAtoms, row_dropout
from r2n.network.input_layers import AtomEmbedding, GridFormula, NoInput, make_input
from r2n.network.mean_field import KNOWN, MeanField, Messages
from r2n.network.mixture import Combination, CountedRules
from r2n.network.mlp import ModulesOf, Output
from r2n.network.paths import PathReasoner
from r2n.network.reasoning import ReasoningLayer, make_layers, reason
from r2n.network.tensors import CPU
from r2n.options import ModelOptions, chosen

EvidenceInput = Literal["off", "add", "only"]
AtomVectors = Float[Tensor, "atoms dim"]
Mask = Bool[Tensor, " atoms"] | None
States = Int64[Tensor, " atoms"] | None
NO_LAYERS = ModelOptions(reasoner="none")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Logits of all atoms of a graph, and of its ground rules, rule by rule (none without a rule output)."""

    atoms: Float[Tensor, " atoms"]
    rules: tuple[Float[Tensor, " _"], ...]


class R2N(nn.Module):
    """Emb^0(a), L reasoning layers, out(a) and out(g); without layers, out(a) is the input layer's score.

    `evidence_input` adds learned vectors for the known truths of atoms to their embeddings, or replaces these.
    `belief_input`, FGNN's, maps the sigmoid of the input layer's score, in place of the embedding. `atom_dropout` acts
    on the input of the first layer: on Emb^0(a), or over grids on the features that the predicates share, row by row.
    With `input_score`, out(a) is the sum of MLP^A and the input layer's score. Steps of mean-field inference start from
    that score (`belief_input`) and what is known, and out(a) is the score and the sum of the messages. With
    `paths`, these layers answer; there is an input layer only if they are blended with its scores (`blends`).
    """

    def __init__(
        self,
        base: HerbrandBase,
        constants: ConstantEmbedding,
        atom_embedding: AtomEmbedding,
        rules: Sequence[Rule] = (),
        options: ModelOptions = NO_LAYERS,
        counted: CountedRules | None = None,
    ) -> None:
        """Make the layers of `rules` and the outputs on top of an input layer."""
        super().__init__()
        check_evidence_is_read(options)
        dim = options.dim
        has_layers = options.has_layers and (options.rules != "counted" or bool(rules))
        layers = make_layers(rules, base.language, options) if has_layers else []
        self.is_mean_field = has_layers and options.reasoner == "mean-field"
        belief_input = nn.Linear(1, dim) if has_layers and options.reasoner == "fgnn" else None  # drawn before outputs
        self.base, self.constants, self.atom_embedding, self.counted = base, constants, atom_embedding, counted
        self.layers = ModulesOf(layers)
        self.atom_output: Output | Messages | None = Messages() if self.is_mean_field else None
        self.rule_output = None
        if has_layers and not self.is_mean_field:
            self.atom_output = output = Output(dim, linear=options.output == "linear")
            self.rule_output = Output(options.rule_dim or dim)
            if options.input_score and not atom_embedding.tells_labels:
                output.start_at_zero()  # the input layer is fitted: reasoning begins with its score
        self.belief_input = belief_input
        self.evidence_input: EvidenceInput = options.evidence_input if has_layers else "off"
        self.input_score = has_layers and (options.input_score or self.is_mean_field)
        self.atom_dropout = options.atom_dropout if has_layers else 0.0
        self.known = None
        if self.is_mean_field:
            self.known = nn.Parameter(torch.tensor(KNOWN), requires_grad=False)
        elif self.evidence_input != "off":
            self.known = nn.Parameter(torch.randn(3, atom_embedding.dim) * 0.3)
        self.combination = None if counted is None else Combination(blends=options.blends)
        self.trained_ids: Tensor | None = None
        answers_along_paths = options.reasoner == "paths"
        of_layers = options.rule_dim or dim
        self.paths = PathReasoner(len(base.shapes), of_layers, options.layers) if answers_along_paths else None
        self.blends = options.blends

    @classmethod
    def build(
        cls,
        knowledge: KnowledgeBase,
        options: ModelOptions | None = None,
        *,
        encoders: Mapping[str, nn.Module] | None = None,
        new: Ids = (),
        **changes: object,
    ) -> "R2N":
        """The network for a knowledge base, by the options of a problem file's [model], and `changes` of them.

        `encoders` are modules of the caller for the features of domains, by name: one is called with a tensor of the
        features of some constants, `(constants, *shape)`, or a list of their texts, and gives them a vector each. `new`
        are constants (ids) that the language got after the training.
        """
        options = chosen(ModelOptions, options, changes)
        if options.reasoner == "paths" and not options.blends:
            count = len(knowledge.language.constants)
            constants, atom_embedding = ConstantEmbedding(count, 0, dropout=0.0, new=range(count)), NoInput()
        else:
            constants, atom_embedding = make_input(knowledge, options, encoders=encoders, new=new)
        counted: CountedRules | None = None
        if options.rules == "counted" or options.blends:
            knowledge, rules = split_rules(knowledge) if options.rules == "counted" else (knowledge, ())
            widest = max(map(len, knowledge.base.shapes), default=0)
            counted = CountedRules(rules, len(knowledge.language.predicates), widest)
        model = cls(knowledge.base, constants, atom_embedding, knowledge.theory.rules, options, counted)
        if model.is_mean_field:
            without = [p for p in knowledge.language.predicates if p.arity == 1 and not len(knowledge.false_facts(p))]
            cast(MeanField, model.layers[0]).take_as_they_are({predicate.name for predicate in without})
        return model

    @property
    def depth(self) -> int:
        """The number of reasoning layers, on factor graphs or along paths."""
        return len(self.layers) if self.paths is None else len(self.paths.layers)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.constants.vectors.device

    @property
    def counts_ground_rules(self) -> bool:
        """Whether ground rules are counted: as scores of their own, or by the input layer."""
        return self.counted is not None or self.atom_embedding.reads_facts

    def collate(self, graph: FactorGraph, kind: Literal["auto"] | Kind = "auto") -> GraphBatch:
        """A graph as this network reads it, on its device; `auto` takes the kind `grid` if that computes the same."""
        reads_more = any(part is not None for part in (self.known, self.belief_input, self.trained_ids, self.paths))
        is_linear = self.atom_embedding.grids is not None and all(layer.is_over_grids for layer in self.layers)
        can_be = is_linear and not reads_more and kind in ("auto", "grid")
        dense_grid = DenseGrid.from_graph(graph.to(CPU), self.base) if can_be else None
        if kind == "grid" and dense_grid is None:
            raise ConfigError(
                "this network and this graph cannot be computed over grids",
                hint="take kind='auto'; docs/decisions/015-whole-base.md says what grids need",
            )
        if kind == "auto":
            kind = "dense" if dense_grid is None else "grid"
        grouped = any(layer.rule_embedding is not None for layer in self.layers)
        reads = self.base, self.constants, self.atom_embedding, self.trained_ids
        return GraphBatch(graph, kind, *reads, dense_grid, grouped).to(self.device)

    def on_base(self, base: HerbrandBase, trained_ids: Int64[Tensor, " constants"]) -> "R2N":
        """The same network, with the same weights, for a language that has grown; new constants have the id -1.

        Atoms with a new constant are masked, as hidden ones are; their known truths are read all the same.
        """
        view = copy(self)
        view.base, view.trained_ids = base, trained_ids.to(CPU)
        return view

    def on_predicates(self, base: HerbrandBase) -> "R2N":
        """The same network, with the same weights, for another language with (some of) the same predicates."""
        assert self.paths is not None
        trained = [predicate.name for predicate in self.base.language.predicates]
        names = [predicate.name for predicate in base.language.predicates]
        for name in names:
            if name not in trained:
                what = f"the network has learned nothing of '{name}'"
                raise ConfigError(what, hint=nearest(name, trained) or f"it knows {', '.join(trained)}")
        view, paths = copy(self), copy(self.paths)
        paths.trained_ids = self.paths.trained_ids[[trained.index(name) for name in names]]
        view.base, view._modules = base, {**self._modules, "paths": paths}
        if self.blends:  # the input layer knows the constants of the training, and counted rules its facts
            view.blends, view.counted, view.combination = False, None, None
        return view

    def input_layer(self, batch: GraphBatch, *, hidden: Mask = None, known: States = None) -> AtomVectors:
        """Emb^0(a) (eq. 1); hidden atoms are masked, and their truths taken for unknown."""
        return self._read(batch, self.embed(batch), hidden, known)

    def _read(self, batch: GraphBatch, embedding: Tensor, hidden: Tensor | None, known: Tensor | None) -> Tensor:
        """The input of the first reasoning layer, made of the input layer's embeddings."""
        if self.belief_input is not None or self.is_mean_field:
            score = self.atom_embedding.score(embedding, batch.predicates).unsqueeze(1)
            embedding = pad(score, (0, 2)) if self.belief_input is None else self.belief_input(torch.sigmoid(score))
        masked = batch.masked
        if hidden is not None and self.atom_embedding.tells_labels:
            masked = hidden if masked is None else hidden | masked
        if masked is not None:
            embedding = embedding.masked_fill(masked.unsqueeze(1), 0.0)
        if self.known is not None:
            states = torch.full_like(batch.predicates, UNKNOWN) if known is None else known
            states = states if hidden is None else states.masked_fill(hidden, UNKNOWN)
            embedding = self.known[states] if self.evidence_input == "only" else embedding + self.known[states]
        return embedding

    def embed(self, batch: GraphBatch) -> AtomVectors:
        """f_P of the constants, for all atoms of the graph."""
        embedded = [(rows, self.atom_embedding(atoms, self.constants)) for rows, atoms in batch.by_arity]
        if len(embedded) == 1:
            return embedded[0][1]
        embedding = self.constants.vectors.new_zeros(len(batch.predicates), self.atom_embedding.dim)
        for rows, part in embedded:
            embedding = embedding.index_copy(0, rows, part)
        return embedding

    def forward(
        self,
        batch: GraphBatch,
        *,
        hidden: Mask = None,
        known: States = None,
        rule_outputs: bool = True,
        embedded: AtomVectors | None = None,
    ) -> Predictions:
        """Logits of all atoms and ground rules; `known`: UNKNOWN, FALSE or TRUE of each atom; `embedded`: f_P."""
        if self.paths is not None:
            return Predictions(self.paths.atom_logits(batch.graph), ())
        grids = self.atom_embedding.grids
        if hidden is None and embedded is None and batch.dense_grid is not None and grids is not None:
            return self._forward_over_grids(batch, batch.dense_grid, grids, rule_outputs=rule_outputs)
        embedded = self.embed(batch) if embedded is None else embedded
        atoms = self._read(batch, embedded, hidden, known)
        if self.atom_output is None:
            return Predictions(self.atom_embedding.score(atoms, batch.predicates), ())
        atoms = dropout(atoms, self.atom_dropout, self.training)
        rules: list[Tensor] = []
        for number, layer in enumerate(self.layers, start=1):
            wanted = rule_outputs and self.rule_output is not None and number == len(self.layers)
            atoms, rules = layer(atoms, batch.incidence, rule_embeddings=wanted)
        outputs = tuple(self.rule_output(rule) for rule in rules) if self.rule_output else ()
        logits = self.atom_output(atoms)
        return Predictions(logits + self.own_score(batch, embedded) if self.input_score else logits, outputs)

    def own_score(self, batch: GraphBatch, embedding: Tensor) -> Tensor:
        """The input layer's score, to be added to the output; nothing for an atom without an embedding."""
        score, masked = self.atom_embedding.score(embedding, batch.predicates), batch.masked
        return score if masked is None else score.masked_fill(masked, 0.0)

    def _forward_over_grids(
        self, batch: GraphBatch, base: DenseGrid, embedding: GridFormula, *, rule_outputs: bool
    ) -> Predictions:
        """The same as `forward`, with the atoms as grids."""
        vectors = self.constants(batch.all_constants)
        inputs = [
            InputAtoms(*embedding.grid(grid.index, [vectors[members] for members in grid.members]))
            for grid in base.grids
        ]
        needs_score = self.atom_output is None or self.input_score
        scores = [embedding.grid_score(part.features, part.diagonals, part.offsets) for part in inputs if needs_score]
        if self.atom_output is None:
            return Predictions(base.in_order(scores), ())
        drop, atoms = self.atom_dropout if self.training else 0.0, list[Atoms]()
        for part, grid in zip(inputs, base.grids, strict=True):
            points = part.features.view(*grid.shape, part.features.shape[-1])
            atoms.append(replace(part, features=row_dropout(points, drop).flatten(0, -2)))
        rules: list[Tensor] = []
        for layer in cast(Iterable[ReasoningLayer], self.layers):
            atoms[:], rules = reason(base, layer, atoms)
        output = cast(Output, self.atom_output)  # mean-field inference is never over grids
        logits = base.in_order([output.over_grid(part.features, part.maps, part.offsets) for part in atoms])
        outputs = tuple(self.rule_output(rule) for rule in rules) if rule_outputs and self.rule_output else ()
        return Predictions(logits + base.in_order(scores) if scores else logits, outputs)
