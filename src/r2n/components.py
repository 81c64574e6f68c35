"""Registries of components (input layers, aggregations, losses, ...): names, abilities and where each is implemented.

Nothing here imports torch: options are checked, memory is estimated and tables are written from the descriptions alone,
and a component is imported when a network is built. Another package adds a component with `register`, or with an entry
point of the group `r2n.input_layers`, `r2n.aggregations` or `r2n.losses`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticCustomError

from r2n.errors import ConfigError, nearest


@dataclass(frozen=True, slots=True)
class Component:
    """The description of a component; `implementation` is its class or function, or "module:name"."""

    name: str
    implementation: str | Callable[..., Any]
    summary: str

    def load(self) -> Any:
        """The class or function itself."""
        if not isinstance(self.implementation, str):
            return self.implementation
        module, _, name = self.implementation.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class InputLayer(Component):
    """An input layer: Emb^0(a), made as `implementation(predicates, dim, scale=...)`.

    `max_arity`: the most positions of a predicate. `scores_rows`: it scores all candidates of a query by one matrix
    product (`VectorFormula`). `over_grids`: it is linear in features that all predicates share (`GridFormula`).
    `reads_features`: it reads features in place of vectors of constants. `floats_per_atom`: numbers that a training
    step keeps for an atom and each of its dimensions. `extra_weights(arities, dim)`: how many weights it learns besides
    the vectors of constants and predicates.
    """

    max_arity: int | None = None
    scores_rows: bool = False
    over_grids: bool = False
    reads_features: bool = False
    floats_per_atom: float = 17.0
    extra_weights: Callable[[Sequence[int], int], int] = lambda _, __: 0


@dataclass(frozen=True, slots=True)
class Aggregation(Component):
    """An aggregation of messages, made as `implementation()`.

    `is_linear`: it is a sum of messages, divided by functions of their numbers. `floats_per_position`: numbers that a
    training step keeps for a position of a ground rule, each dimension and layer.
    """

    is_linear: bool = True
    floats_per_position: float = 0.0


@dataclass(frozen=True, slots=True)
class Loss(Component):
    """A loss L_sup: a function of logits of atoms and their truth, or (`compares_facts`) of facts and their negatives.

    `asks_base`: it reads the logits of all atoms of the Herbrand base. `by_candidates`: an input layer that answers
    alone can be trained on the candidates of queries, without a graph.
    """

    compares_facts: bool = False
    asks_base: bool = False
    by_candidates: bool = False


@dataclass(frozen=True, slots=True)
class Optimiser(Component):
    """An optimiser of torch; `takes_sparse`: it changes only the rows that a sparse gradient has."""

    takes_sparse: bool = False


Described = TypeVar("Described", bound=Component)
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Registry(Generic[Described]):
    """The components of one kind, by name; those of entry points are loaded when they are first asked for."""

    def __init__(self, kind: str, of: type[Described], *builtin: Described, group: str | None = None) -> None:
        """`kind` is what messages call a component, `group` the group of its entry points."""
        self.kind, self._of, self._group = kind, of, group
        self._known = {part.name: part for part in builtin}

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        found = () if self._group is None else entry_points(group=self._group)
        return {part.name: part for part in found if part.name not in self._known}

    def register(self, implementation: Implementation) -> Implementation:
        """Add a class or function that has its `name` and abilities as attributes; usable as a decorator."""
        abilities = {
            part.name: getattr(implementation, part.name)
            for part in fields(self._of)
            if part.name not in ("implementation", "summary") and hasattr(implementation, part.name)
        }
        summary = (implementation.__doc__ or "").strip().partition("\n")[0]
        described = self._of(implementation=implementation, summary=summary, **abilities)
        self._known[described.name] = described
        return implementation

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._entry_points]))

    def __getitem__(self, name: str) -> Described:
        if name not in self._known and name in self._entry_points:
            self.register(self._entry_points[name].load())
        if name not in self._known:
            known = list(self)
            hint = nearest(name, known) or f"there is: {', '.join(known)}"
            raise ConfigError(f"there is no {self.kind} '{name}'", hint=hint)
        return self._known[name]

    def named(self, *also: str) -> Callable[[Any], Any]:
        """A validator of options: the name of a component, or one of some other words."""

        def validated(value: Any) -> Any:
            if isinstance(value, str) and (value in self._known or value in also or value in self._entry_points):
                return value
            *first, last = [f"'{name}'" for name in (*also, *self)]
            expected = f"{', '.join(first)} or {last}" if first else last
            raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})

        return validated

    def table(self) -> str:
        """The components as a Markdown table, one row each, with what they can do."""
        described = [self[name] for name in self]
        columns = [part.name for part in fields(self._of)[3:] if not callable(getattr(described[0], part.name))]
        rows = [["name", "summary", *(name.replace("_", " ") for name in columns)], ["---"] * (2 + len(columns))]
        words = {None: "any", True: "yes", False: ""}
        for part in described:
            values = [getattr(part, name) for name in columns]
            cells = [words[value] if value is None or isinstance(value, bool) else f"{value:g}" for value in values]
            rows.append([f"`{part.name}`", part.summary, *cells])
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


_LAYERS, _REASONING = "r2n.network.input_layers", "r2n.network.reasoning"
_LOSSES, _GROUNDERS = "r2n.training.objective", "r2n.grounding.strategies:make_grounder"
_formula = partial(InputLayer, scores_rows=True, over_grids=True)

input_layers = Registry(
    "input layer",
    InputLayer,
    _formula("distmult", f"{_LAYERS}:DistMult", "r_P * c_1 * ... * c_n", floats_per_atom=10.0),
    _formula("complex", f"{_LAYERS}:ComplEx", "Re(r_P * c_1 * conj(c_2)), component by component", max_arity=2),
    _formula("transe", f"{_LAYERS}:TransE", "c_1 + r_P - c_2", max_arity=2, floats_per_atom=3.0),
    _formula("rotate", f"{_LAYERS}:RotatE", "Re(r_P * c_1 * conj(c_2)) where r_P is a rotation", max_arity=2),
    InputLayer(
        "mlp",
        f"{_LAYERS}:AtomMLP",
        "an MLP of the constants' vectors for each predicate",
        floats_per_atom=7.0,
        extra_weights=lambda arities, dim: sum((arity + 1) * dim * dim for arity in arities),
    ),
    InputLayer(
        "pair",
        "r2n.network.pair_embedding:PairEmbedding",
        "a classifier of the constants' features",
        reads_features=True,
        floats_per_atom=11.0,
    ),
    InputLayer(
        "regression",
        "r2n.network.regression:Regression",
        "a logistic regression on the constants' features and counted clauses",
        reads_features=True,
        floats_per_atom=3.0,
    ),
    group="r2n.input_layers",
)

aggregations = Registry(
    "aggregation",
    Aggregation,
    Aggregation("sum", f"{_REASONING}:Sum", "the sum of all messages (the paper's)"),
    Aggregation("mean", f"{_REASONING}:Mean", "the mean of all messages"),
    Aggregation("max", f"{_REASONING}:Maximum", "the maximum, dimension by dimension", False, 3.5),
    Aggregation("mean-then-sum", f"{_REASONING}:MeanThenSum", "the mean over each rule, summed over rules"),
    group="r2n.aggregations",
)

_comparing = partial(Loss, compares_facts=True, by_candidates=True)

losses = Registry(
    "loss",
    Loss,
    Loss("bce", f"{_LOSSES}:binary_cross_entropy", "binary cross-entropy of labelled atoms and negatives"),
    _comparing("softmax", f"{_LOSSES}:softmax_loss", "each fact against its negatives"),
    _comparing("full-softmax", f"{_LOSSES}:BaseSoftmax", "each fact against all candidates", asks_base=True),
    group="r2n.losses",
)

optimisers = Registry(
    "optimiser",
    Optimiser,
    Optimiser("adam", "torch.optim:Adam", "Adam"),
    Optimiser("adagrad", "torch.optim:Adagrad", "Adagrad", takes_sparse=True),
)

t_norms = Registry(
    "t-norm",
    Component,
    Component("product", f"{_LOSSES}:product", "T(a, b) = a b"),
    Component("goedel", f"{_LOSSES}:goedel", "T(a, b) = min(a, b)"),
    Component("lukasiewicz", f"{_LOSSES}:lukasiewicz", "T(a, b) = max(0, a + b - 1)"),
)

strategies = Registry(
    "grounding strategy",
    Component,
    Component("full", _GROUNDERS, "every substitution"),
    Component("known-body", _GROUNDERS, "substitutions whose body is known"),
    Component("backward", _GROUNDERS, "backward chaining from what is asked"),
    Component("paths", _GROUNDERS, "along paths of known facts, outwards from the first constant of what is asked"),
)
