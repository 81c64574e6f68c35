"""Training along paths: some facts are asked on the graph of the others."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64

from r2n.data.herbrand import Codes, RowIndex, closed_atoms, index_among
from r2n.data.knowledge_base import Evidence, counterparts
from r2n.errors import ConfigError
from r2n.grounding.paths import QUERIES_AN_EPOCH, FactIndex, PathQueries
from r2n.network.graph_sources import Paths
from r2n.network.mixture import log_sum
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.training.batches import Losses

QUERIES_AT_ONCE = 64
LEARNING_RATE = 0.005
MOST_EPOCHS = 100_000  # the minutes say when to stop


@dataclass(frozen=True, eq=False)
class PathQueriesStep:
    """Queries q(h, ?), and their answers: the row of each, and its number `row * constants + y`.

    `known` are the numbers (ascending) of all true atoms of these rows, which are not compared with an answer, and of
    constants outside the domain; `others` counts the candidates of each row that are not among them.
    """

    index: FactIndex
    queries: PathQueries
    width: int
    row: Int64[np.ndarray, " answers"]
    answers: Int64[np.ndarray, " answers"]
    known: Int64[np.ndarray, " known"]
    others: Int64[np.ndarray, " queries"]

    def losses(self, model: R2N, options: TrainingOptions) -> Losses:
        """The mean over the answers of minus the log of each one's probability among the unknown atoms of its row.

        Of an atom that no path reaches, the logit is what the facts of its constant alone say.
        """
        assert model.paths is not None
        found = model.paths(self.index, self.queries, self.width)
        reached, logits, alone = found.reached, found.logits, found.alone
        compared = np.flatnonzero(index_among(reached, self.known) < 0)
        row = reached[compared] // self.index.constants
        left = np.flatnonzero(self.others - np.bincount(row, minlength=len(self.queries)))
        out = np.concatenate([reached[compared], self.known])
        at = index_among(self.answers, reached)
        arrays = np.flatnonzero(at >= 0), at[at >= 0], self.row, np.append(row, left), compared, left, out
        which, at, owner, groups, compared, left, out = (torch.from_numpy(part).to(logits.device) for part in arrays)
        most, of_query = alone.detach().amax(dim=0), out // self.index.constants
        each = torch.exp(alone - most)  # what is not reached is the rest of all, by a small difference
        cells = (out % self.index.constants).mul_(alone.shape[1]).add_(found.owner.index_select(0, of_query))
        of_out = each.flatten().index_select(0, cells).double()
        rest = each.sum(dim=0, dtype=torch.float64)[found.owner].index_add(0, of_query, of_out, alpha=-1)
        logs = torch.log(rest[left].clamp(min=1e-9)).to(logits) + most[found.owner[left]]
        others = log_sum(torch.cat([logits[compared], logs]), groups, len(self.queries))[owner]
        true = found.of_each(self.answers).index_copy(0, which, logits[at])
        loss = (torch.logaddexp(others, true) - true).mean()
        return Losses(loss, loss, loss.new_zeros(()), loss.new_zeros(()))


def after_input_layer(training: TrainingOptions) -> TrainingOptions:
    """The options of the training along paths that follows that of an input layer, in what is left of the minutes."""
    own = {
        "optimiser": "adam",
        "learning_rate": LEARNING_RATE if training.rule_learning_rate is None else training.rule_learning_rate,
        "rule_learning_rate": None,
        "schedule": "linear",
        "clip": 1.0 if training.clip is None else training.clip,
        "batch_size": QUERIES_AT_ONCE,
        "patience": None,
        "epochs": training.path_epochs or (training.epochs if training.minutes is None else MOST_EPOCHS),
    }
    return training.model_copy(update=own)


class PathBatches:
    """Facts in batches of queries; each epoch draws anew which facts are asked, on the graph of the others."""

    ground_rules = 0

    def __init__(self, model: R2N, source: Paths, evidence: Evidence, options: TrainingOptions) -> None:
        """Find the facts to ask: open ones of binary predicates; their reciprocals are asked with them."""
        self.base, self.source, self.options = model.base, source, options
        facts = evidence.facts
        self.predicates, self.arguments = self.base.decode(facts)
        predicates = self.base.language.predicates
        is_asked = np.array([p.arity == 2 and p.reciprocal_of is None for p in predicates], bool)[self.predicates]
        is_asked &= options.ask_closed | ~closed_atoms(self.base, facts)
        self.facts, self.asked_facts = facts, facts[is_asked]
        if not is_asked.any():
            raise ConfigError("there is no fact to learn from", hint="add facts of binary predicates to [facts] train")
        row = self._row(self.predicates, self.arguments)
        self._order = np.argsort(row, kind="stable")
        self._known = RowIndex.from_rows(row[self._order])

    def _row(self, predicates: np.ndarray, arguments: np.ndarray) -> Codes:
        return predicates * len(self.base.language.constants) + arguments[:, 0]

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The facts; they are compared with candidates, and no atom is asked as false."""
        return self.asked_facts, np.zeros(0, np.int64)

    def epoch(self, generator: torch.Generator) -> Iterator[PathQueriesStep]:
        """The steps of one epoch, queries in random order."""
        share = max(1, round(self.options.asked_share * len(self.asked_facts)))
        drawn = self.asked_facts[torch.randperm(len(self.asked_facts), generator=generator)[:share].numpy()]
        reciprocal = counterparts(self.base, drawn)
        out = np.searchsorted(self.facts, np.concatenate([drawn, reciprocal[reciprocal >= 0]]))
        kept = np.ones(len(self.facts), bool)
        kept[out] = False
        kept &= self.arguments[:, 1:].max(axis=1, initial=-1) >= 0
        constants, reciprocals = len(self.base.language.constants), self.source.index.reciprocals
        index = FactIndex.from_facts(self.predicates[kept], self.arguments[kept], constants, reciprocals)
        rows = self._row(self.predicates[out], self.arguments[out])
        order = np.argsort(rows, kind="stable")
        asked, answers = RowIndex.from_rows(rows[order]), self.arguments[out[order], 1]
        size = self.options.batch_size or QUERIES_AT_ONCE
        queries = torch.randperm(len(asked.rows), generator=generator)[: max(size, QUERIES_AN_EPOCH)].numpy()
        return (self._step(index, asked, answers, part) for part in np.split(queries, range(size, len(queries), size)))

    def _step(self, index: FactIndex, asked: RowIndex, answers: np.ndarray, some: np.ndarray) -> PathQueriesStep:
        rows = asked.rows[some]
        predicates, heads = np.divmod(rows, index.constants)
        row, fact = asked.entries(rows)
        pairs = self.options.leave_out == "pair"
        queries = PathQueries(predicates, heads, (row, answers[fact]) if pairs else None, pairs)
        owner, known = self._known.entries(rows)
        true = owner * index.constants + self.arguments[self._order[known], 1]
        language, sizes, outside = self.base.language, np.zeros(len(rows), np.int64), list[np.ndarray]()
        for predicate in np.unique(predicates).tolist():
            which = np.flatnonzero(predicates == predicate)
            members = language.members(language.predicates[predicate].domains[1])
            sizes[which] = len(members)
            if len(members) < index.constants:
                others = np.setdiff1d(np.arange(index.constants), members, assume_unique=True)
                outside.append((which[:, None] * index.constants + others).ravel())
        true = np.unique(true)
        others = sizes - np.bincount(true // index.constants, minlength=len(rows))
        left_out = np.unique(np.concatenate([true, *outside]))
        answers = row * index.constants + answers[fact]
        return PathQueriesStep(index, queries, self.source.grounder.width, row, answers, left_out, others)
