"""Tensors -> predictions: the network, from its input layer over the reasoning layers to its outputs."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary, ref

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout

from r2n.errors import ConfigError
from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.model.atom_embedding import AtomEmbedding, GridEmbedding
from r2n.model.constant_embedding import ConstantEmbedding
from r2n.model.grid_atoms import Atoms, InputAtoms, row_dropout
from r2n.model.input_layer import make_input
from r2n.model.layout import Prepared
from r2n.model.outputs import AtomOutput, RuleOutput
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.reasoning import Aggregation, Depth, Isolated, ReasoningLayer, make_layer
from r2n.model.whole_base import WholeBase

UNKNOWN, FALSE, TRUE = 0, 1, 2

EvidenceInput = Literal["off", "add", "only"]
Reasoner = Literal["r2n", "fgnn", "none"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Logits of all atoms of a graph, and of its ground rules, rule by rule (none without a rule output)."""

    atoms: Float[Tensor, " atoms"]
    rules: tuple[Float[Tensor, " _"], ...]


class R2N(nn.Module):
    """Emb^0(a), L reasoning layers, out(a) and out(g).

    `evidence_input` adds learned vectors for what is known of an atom to its embedding, or puts them in its place.
    The reasoner `fgnn` reads only the belief that the input layer's score gives; `none` outputs that score. With
    `input_score`, out(a) is the sum of MLP^A and the input layer's score. `atom_dropout` acts on what the first
    reasoning layer reads: on Emb^0(a), or over grids on the features that the predicates share, row by row.
    """

    def __init__(
        self,
        base: HerbrandBase,
        constants: ConstantEmbedding,
        atom_embedding: nn.Module,
        layers: list[ReasoningLayer],
        atom_output: AtomOutput | None,
        rule_output: RuleOutput | None,
        *,
        evidence_input: EvidenceInput = "off",
        belief_input: nn.Linear | None = None,
        input_score: bool = False,
        atom_dropout: float = 0.0,
        dense: bool = True,
    ) -> None:
        """Put the parts together; without `atom_output`, out(a) is the input layer's score."""
        super().__init__()
        self.input_score, self.atom_dropout = input_score, atom_dropout
        self.base, self.dense, self.evidence_input = base, dense, evidence_input
        self.constants, self.atom_embedding = constants, atom_embedding
        self.layers = nn.ModuleList(layers)
        self.atom_output, self.rule_output, self.belief_input = atom_output, rule_output, belief_input
        dim = int(atom_embedding.dim)  # pyright: ignore
        self.known = None if evidence_input == "off" else nn.Parameter(torch.randn(3, dim) * 0.3)
        self.trained_ids: Tensor | None = None
        self._prepared: WeakKeyDictionary[FactorGraph, Prepared] = WeakKeyDictionary()

    @classmethod
    def build(
        cls,
        knowledge: KnowledgeBase,
        *,
        input: str = "complex",
        dim: int = 32,
        rule_dim: int | None = None,
        layers: int = 3,
        reasoner: Reasoner = "r2n",
        aggregation: Aggregation = "mean",
        residual: bool = False,
        exclude_self: bool = False,
        isolated: Isolated = "keep",
        shared_layers: bool = False,
        evidence_input: EvidenceInput = "off",
        constant_dropout: float = 0.0,
        atom_dropout: float = 0.0,
        rule_dropout: float = 0.0,
        mlp: Depth = "deep",
        output: Literal["mlp", "linear"] = "mlp",
        input_score: bool = False,
        dense: bool = True,
        encoders: Mapping[str, nn.Module] | None = None,
        **encoding: Any,
    ) -> "R2N":
        """The network for a knowledge base, with parts of the named kinds.

        `encoders` are modules of the caller for the features of domains, by name: one is called with a tensor of the
        features of some constants, (constants, *shape), or a list of their texts, and gives them a vector each.
        `encoding` are the options of encoders in `make_input`: encoder_dim, pair, word_dropout and so on.
        """
        constants, atom_embedding = make_input(
            knowledge, input, dim, constant_dropout=constant_dropout, encoders=encoders, **encoding
        )
        rule_dim = rule_dim or dim
        if reasoner == "none" or layers == 0:
            if evidence_input != "off":
                raise ConfigError("evidence as input needs reasoning layers", hint="set layers to 1 or more")
            return cls(knowledge.base, constants, atom_embedding, [], None, None, dense=dense)

        def layer() -> ReasoningLayer:
            return make_layer(
                knowledge.theory.rules,
                dim,
                rule_dim,
                ordered=reasoner == "r2n",
                aggregation=aggregation,
                residual=residual,
                exclude_self=exclude_self,
                mlp=mlp,
                isolated=isolated,
                rule_dropout=rule_dropout,
            )

        first = layer()
        stack = [first if shared_layers or i == 0 else layer() for i in range(layers)]
        belief = nn.Linear(1, dim) if reasoner == "fgnn" else None
        outputs = AtomOutput(dim, linear=output == "linear"), RuleOutput(rule_dim)
        return cls(
            knowledge.base,
            constants,
            atom_embedding,
            stack,
            *outputs,
            evidence_input=evidence_input,
            belief_input=belief,
            input_score=input_score,
            atom_dropout=atom_dropout,
            dense=dense,
        )

    def prepare(self, graph: FactorGraph) -> Prepared:
        """Lay out a graph once; asked again, it is remembered."""
        if graph not in self._prepared:
            pairs = self.atom_embedding if isinstance(self.atom_embedding, PairEmbedding) else None
            self._prepared[graph] = Prepared(ref(graph), self.base, self.dense, pairs, self.trained_ids)
        return self._prepared[graph]

    def on_base(self, base: HerbrandBase, trained_ids: Int64[Tensor, " constants"]) -> "R2N":
        """The same network, with the same weights, for a language that has grown; new constants have the id -1.

        Atoms with a new constant enter blanked, as hidden ones do; what is known of them is read all the same.
        """
        view = copy(self)
        view.base, view.trained_ids, view._prepared = base, trained_ids, WeakKeyDictionary()
        return view

    def input_layer(
        self,
        graph: FactorGraph,
        *,
        hidden: Bool[Tensor, " atoms"] | None = None,
        known: Int64[Tensor, " atoms"] | None = None,
    ) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a) (eq. 1); hidden atoms are blanked, and what is known of them is taken for unknown."""
        return self._read(graph, self.embed(graph), hidden, known)

    def _read(self, graph: FactorGraph, embedding: Tensor, hidden: Tensor | None, known: Tensor | None) -> Tensor:
        """What the first reasoning layer reads, made of the input layer's embeddings."""
        if self.belief_input is not None:
            embedding = self.belief_input(torch.sigmoid(self._score(graph, embedding)).unsqueeze(1))
        blank = self.prepare(graph).blank
        if hidden is not None:
            blank = hidden if blank is None else hidden | blank
        if blank is not None:
            embedding = embedding.masked_fill(blank.unsqueeze(1), 0.0)
        if self.known is not None:
            states = torch.zeros_like(graph.atoms) if known is None else known
            states = states if hidden is None else states.masked_fill(hidden, UNKNOWN)
            embedding = self.known[states] if self.evidence_input == "only" else embedding + self.known[states]
        return embedding

    def embed(self, graph: FactorGraph) -> Float[Tensor, "atoms dim"]:
        """f_P of the constants, for all atoms of the graph."""
        prepared = self.prepare(graph)
        parts = prepared.by_arity
        if isinstance(self.atom_embedding, PairEmbedding):
            embedded = [self.atom_embedding(layout, self.constants) for layout in prepared.pairs]
        else:
            embedded = [self.atom_embedding(index, self.constants(arguments)) for _, index, arguments in parts]
        if len(parts) == 1:
            return embedded[0]
        dim = int(self.atom_embedding.dim)  # pyright: ignore
        embedding = self.constants.vectors.new_zeros(len(graph.atoms), dim)
        for (rows, _, _), part in zip(parts, embedded, strict=True):
            embedding = embedding.index_copy(0, rows, part)
        return embedding

    def _score(self, graph: FactorGraph, embedding: Tensor) -> Tensor:
        scorer = self.atom_embedding
        if isinstance(scorer, PairEmbedding):
            return scorer.score(embedding, self.prepare(graph).predicates)
        if not isinstance(scorer, AtomEmbedding):
            raise ConfigError(f"{type(scorer).__name__} has no score")
        return scorer.score(embedding)

    def _own_score(self, graph: FactorGraph, embedding: Tensor) -> Tensor:
        """The input layer's score, where it is added to the output; nothing for an atom without an embedding."""
        score, blank = self._score(graph, embedding), self.prepare(graph).blank
        return score if blank is None else score.masked_fill(blank, 0.0)

    def forward(
        self,
        graph: FactorGraph,
        *,
        hidden: Bool[Tensor, " atoms"] | None = None,
        known: Int64[Tensor, " atoms"] | None = None,
        rule_outputs: bool = True,
    ) -> Predictions:
        """Logits of all atoms and ground rules; `known` gives each atom's UNKNOWN, FALSE or TRUE."""
        whole = self._whole(graph) if hidden is None else None
        if whole is not None:
            return self._over_grids(whole, rule_outputs=rule_outputs)
        embedded = self.embed(graph)
        atoms = self._read(graph, embedded, hidden, known)
        if self.atom_output is None:
            return Predictions(self._score(graph, atoms), ())
        own_score = self._own_score(graph, embedded) if self.input_score else 0.0
        atoms = dropout(atoms, self.atom_dropout, self.training)
        incidence = self.prepare(graph).incidence
        rules: list[Tensor] = []
        for number, layer in enumerate(self.layers, start=1):
            wanted = rule_outputs and self.rule_output is not None and number == len(self.layers)
            atoms, rules = layer(atoms, incidence, rule_embeddings=wanted)
        outputs = tuple(self.rule_output(rule) for rule in rules) if self.rule_output else ()
        return Predictions(self.atom_output(atoms) + own_score, outputs)

    def _whole(self, graph: FactorGraph) -> WholeBase | None:
        """The graph as grids, where that computes the same as its atoms one by one."""
        if (
            self.known is not None
            or self.belief_input is not None
            or not isinstance(self.atom_embedding, GridEmbedding)
        ):
            return None
        whole = self.prepare(graph).whole
        layers = [layer for layer in self.layers if isinstance(layer, ReasoningLayer)]
        return whole if whole is not None and all(map(whole.takes, layers)) else None

    def _over_grids(self, whole: WholeBase, *, rule_outputs: bool) -> Predictions:
        """The same as `forward`, with the atoms as grids."""
        embedding = self.atom_embedding
        assert isinstance(embedding, GridEmbedding)
        vectors = self.constants.table()
        inputs = [
            InputAtoms(*embedding.grid(torch.tensor(grid.predicates), [vectors[members] for members in grid.members]))
            for grid in whole.grids
        ]
        scores = [
            embedding.grid_score(part.features, part.diagonals, part.offsets) for part in inputs if self._needs_score
        ]
        if self.atom_output is None:
            return Predictions(whole.in_order(scores), ())
        drop = self.atom_dropout if self.training else 0.0
        atoms: Sequence[Atoms] = [
            replace(part, features=row_dropout(part.features.view(*grid.shape, -1), drop).flatten(0, -2))
            for part, grid in zip(inputs, whole.grids, strict=True)
        ]
        rules: list[Tensor] = []
        for layer in self.layers:
            assert isinstance(layer, ReasoningLayer)
            atoms, rules = whole.layer(layer, atoms)
        logits = whole.in_order([self.atom_output.over_grid(part.features, part.maps, part.offsets) for part in atoms])
        outputs = tuple(self.rule_output(rule) for rule in rules) if rule_outputs and self.rule_output else ()
        return Predictions(logits + whole.in_order(scores) if scores else logits, outputs)

    @property
    def _needs_score(self) -> bool:
        return self.atom_output is None or self.input_score
