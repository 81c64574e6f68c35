"""Training on the candidates of queries, by the network and by counted rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, embedding

from r2n.components import losses, optimisers
from r2n.data.herbrand import Codes, QueryPattern, closed_atoms, ranges
from r2n.data.knowledge_base import Evidence
from r2n.data.validation import check_candidate_batches
from r2n.errors import ConfigError
from r2n.grounding.counting import LeftOut, PatternCounts, RuleCounts
from r2n.logic.language import Domain
from r2n.network.mixture import CountedRules, log_sum
from r2n.network.r2n import R2N
from r2n.network.tensors import Tensors
from r2n.options import TrainingOptions
from r2n.training.batches import SINGLE, Losses
from r2n.training.negatives import asked_positions


@dataclass(frozen=True, eq=False)
class RowStep(Tensors):
    """Rows of one position and arity, and their facts: the row of each, and the constant at the open position.

    `candidates` are the constants (ids) to compare with: all of the domain, if `shift` is zero and `answers` are
    indices among them; else a sample, with `shift` on their logits, and `answers` are ids. With a
    `relation_weight`, a fact is also compared with the predicates `rivals`, in ascending order. `sparse`: gradients
    hold only the vectors that were read.
    """

    position: int
    predicates: Int64[Tensor, " rows"]
    given: Int64[Tensor, "rows positions"]
    row: Int64[Tensor, " facts"]
    answers: Int64[Tensor, " facts"]
    candidates: Int64[Tensor, " candidates"]
    rivals: Int64[Tensor, " rivals"]
    relation_weight: float
    shift: float
    sparse: bool
    weight: float

    def losses(self, model: R2N, options: TrainingOptions) -> Losses:
        """The mean over the facts of minus the log of each one's probability in its row, and N3 of their vectors."""
        if not len(self.row):
            return Losses(*torch.zeros(4, device=model.device))
        rows, read = model.atom_embedding.rows, self._reader(model)
        assert rows is not None
        scores = rows.row_scores(self.predicates, self.position, read(self.given), read(self.candidates))
        facts = self.given[self.row].clone()
        facts[:, self.position] = self.candidates[self.answers] if not self.shift else self.answers
        vectors = read(facts)
        if self.shift:
            true = model.atom_embedding.score(
                rows.formula(self.predicates[self.row], vectors), self.predicates[self.row]
            )
            others = scores[self.row].masked_fill(self.candidates == self.answers.unsqueeze(1), -torch.inf)
            losses = torch.logsumexp(torch.cat([true.unsqueeze(1), others + self.shift], dim=1), dim=1) - true
        else:
            losses = torch.logsumexp(scores, dim=1)[self.row] - scores[self.row, self.answers]
        mean = losses.mean()
        if self.relation_weight:
            own = torch.searchsorted(self.rivals, self.predicates[self.row])
            mean = mean + self.relation_weight * cross_entropy(rows.predicate_scores(self.rivals, vectors), own)
        supervised, zero = self.weight * mean, losses.new_zeros(())
        total = supervised
        if options.n3:
            total = total + self.weight * options.n3 * rows.n3(self.predicates[self.row], vectors)
        return Losses(total, supervised, zero, zero)

    def _reader(self, model: R2N) -> Callable[[Tensor], Tensor]:
        """Constants (ids) -> their vectors; those with features are encoded once a step."""
        constants = model.constants
        if len(constants.vectors) < len(constants.row_of):
            answers = self.answers if self.shift else self.answers[:0]
            used = torch.cat([self.given.flatten(), self.candidates, answers]).unique()
            table = constants(constants.collate(used.cpu()).to(used.device))
            return lambda ids: table[torch.searchsorted(used, ids)]
        return lambda ids: dropout(
            embedding(ids, constants.vectors, sparse=self.sparse), constants.dropout, model.training
        )


def asks_rows(model: R2N, options: TrainingOptions) -> bool:
    """Whether facts are compared row by row, with all candidates or some drawn; refused if there are layers."""
    wanted = losses[options.loss].by_candidates and (options.asks_base or options.negatives is not None)
    if options.batch_size is None or not wanted:
        return False
    is_alone = model.atom_embedding.rows is not None and model.atom_output is None
    check_candidate_batches(is_alone, options)
    return is_alone and options.regularisation == "off"


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of some predicates at one position, by row: those of row i are `starts[i]` to `starts[i + 1]`."""

    position: int
    predicates: np.ndarray
    given: np.ndarray
    starts: np.ndarray
    answers: np.ndarray
    members: np.ndarray
    rivals: np.ndarray
    relation_weight: float


# large steps have a multiple of so many rows, some of them unread: every other size of product takes memory
MULTIPLE = 64


class RowBatches:
    """Facts in batches of full rows, drawn anew in every epoch, and the constants they are compared with."""

    ground_rules = 0

    def __init__(self, model: R2N, evidence: Evidence, options: TrainingOptions) -> None:
        """Group the true facts by arity, position and domain of the open position.

        With `relation_weight`, by all domains, and reciprocals apart: these are the predicates that are compared.
        """
        self.options, self.device = options, model.device
        self.group = SINGLE
        facts = evidence.facts
        self.facts = facts if options.ask_closed else facts[~closed_atoms(model.base, facts)]
        base = model.base
        index, arguments = base.decode(self.facts)
        found: dict[tuple[int, Domain, tuple[object, ...]], list[tuple[np.ndarray, ...]]] = {}
        kinds = [(p.domains, p.reciprocal_of is None) for p in base.language.predicates]
        for i in np.unique(index).tolist():
            predicate = base.language.predicates[i]
            for position in asked_positions(options.corrupted_positions, predicate.arity):
                rows, candidates = QueryPattern.from_base(base, i, position).located(self.facts[index == i])
                order = np.argsort(rows, kind="stable")
                _, first = np.unique(rows[order], return_index=True)
                given = arguments[index == i][order][first][:, : predicate.arity]
                part = (np.full(len(first), i), given, np.diff(np.append(first, len(order))), candidates[order])
                kind = kinds[i] if options.relation_weight else (predicate.arity,)
                found.setdefault((position, predicate.domains[position], kind), []).append(part)
        if not found:
            raise ConfigError("there is no fact to learn from", hint="add facts to [facts] train")
        self.groups: list[_Facts] = []
        for (position, domain, kind), parts in found.items():
            predicates, given, sizes, answers = (np.concatenate(part) for part in zip(*parts, strict=True))
            starts = np.concatenate([[0], np.cumsum(sizes)])
            rivals = np.flatnonzero([own == kind for own in kinds])
            members = base.language.members(domain)
            each = options.relation_weight / len(asked_positions(options.corrupted_positions, given.shape[1]))
            self.groups.append(_Facts(position, predicates, given, starts, answers, members, rivals, each))
        self.rows = sum(len(group.answers) for group in self.groups)  # facts, once for each position that is asked

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The facts; they are compared with candidates, and no atom is asked as false."""
        return self.facts, np.zeros(0, np.int64)

    def epoch(self, generator: torch.Generator) -> Iterator[RowStep]:
        """The steps of one epoch: rows in random order, about `batch_size` facts each; the shard of this process."""
        cuts: list[tuple[_Facts, np.ndarray]] = []
        for group in self.groups:
            order = torch.randperm(len(group.starts) - 1, generator=generator).numpy()
            ends = np.cumsum(group.starts[order + 1] - group.starts[order])
            size = self.options.batch_size or 1
            at = np.searchsorted(ends, np.arange(size, ends[-1], size), side="left") + 1
            cuts += [(group, part) for part in np.split(order, np.unique(at)) if len(part)]
        order = torch.randperm(len(cuts), generator=generator).tolist()
        return (self._step(cuts[i][0], cuts[i][1], generator, len(cuts) / self.rows) for i in order)

    def _step(self, group: _Facts, rows: np.ndarray, generator: torch.Generator, weight: float) -> RowStep:
        rows = rows[self.group.rank :: self.group.count]
        first, sizes = group.starts[rows], group.starts[rows + 1] - group.starts[rows]
        owner, which = ranges(first, sizes)
        answers, drawn = group.answers[which], self.options.negatives
        candidates, shift, sparse = torch.from_numpy(group.members), 0.0, False
        if not self.options.asks_base and drawn is not None and drawn < len(candidates):
            shift = float(np.log(len(candidates) / drawn))
            candidates = candidates[torch.randint(len(candidates), (drawn,), generator=generator)]
            answers = group.members[answers]
            # a decay touches every vector
            sparse = optimisers[self.options.optimiser].takes_sparse and not self.options.input_weight_decay
        size = -(-len(rows) // MULTIPLE) * MULTIPLE if len(rows) > MULTIPLE else len(rows)
        rows = np.resize(rows, size)
        arrays = (group.predicates[rows], group.given[rows], owner, answers)
        predicates, given, row, true = map(torch.from_numpy, arrays)
        parts = (predicates, given, row, true, candidates, torch.from_numpy(group.rivals))
        of_fact = group.relation_weight * self.rows / len(self.facts)  # a fact counts once, wherever it is asked
        return RowStep(group.position, *parts, of_fact, shift, sparse, weight * len(owner)).to(self.device)


ENTRIES_AT_ONCE = 2**16
ENTRIES_AN_EPOCH = 2**25  # above, an epoch takes a sample of the facts


@dataclass(frozen=True, eq=False)
class RuleStep:
    """Facts of one predicate and position: for each entry the fact, rule, log count, and if it concludes the fact."""

    predicate: int
    position: int
    facts: int
    fact: Int64[Tensor, " entries"]
    rules: Int64[Tensor, " entries"]
    log_counts: Float[Tensor, " entries"]
    is_true: Bool[Tensor, " entries"]
    weight: float

    def losses(self, model: R2N, options: TrainingOptions) -> Losses:
        """The mean over the facts of minus the log probability of each, or of the bias if no rule concludes it."""
        assert model.counted is not None
        parts = (self.fact, self.rules, self.log_counts, self.is_true)
        fact, rules, log_counts, is_true = (part.to(model.device) for part in parts)
        log_weights = model.counted.log_weights(self.position, rules, log_counts)
        bias = model.counted.rest[self.predicate, self.position].expand(self.facts)
        each = torch.arange(self.facts, device=model.device)
        every = log_sum(torch.cat([log_weights, bias]), torch.cat([fact, each]), self.facts)
        true = log_sum(log_weights[is_true], fact[is_true], self.facts)
        is_reached = torch.zeros_like(each, dtype=torch.bool).index_fill(0, fact[is_true], True)
        loss = self.weight * (every - torch.where(is_reached, true, bias)).mean()
        return Losses(loss, loss, loss.new_zeros(()), loss.new_zeros(()))


@dataclass(frozen=True, eq=False)
class _RuleFacts:
    """The facts of one predicate at one position, by number, with the number of entries of each that is asked."""

    counts: PatternCounts
    left_out: LeftOut
    facts: np.ndarray
    sizes: np.ndarray
    is_asked: np.ndarray


class RuleBatches:
    """The facts that counted rules learn from, in steps of about equally many entries, drawn anew in every epoch."""

    ground_rules = 0

    def __init__(self, counts: RuleCounts, options: TrainingOptions) -> None:
        """Find for every fact the ground rules that are not counted while it is the query."""
        base = counts.base
        self.patterns: list[_RuleFacts] = []
        heads = {rule.atoms[rule.head_positions[0]].predicate for rule in counts.rules}
        for name in sorted(heads):
            predicate = base.language.predicate_index(name)
            facts = counts.store.knowledge.known_codes(base.language.predicates[predicate], True)
            is_asked = ~closed_atoms(base, facts) | options.ask_closed
            for position in range(len(base.shapes[predicate])) if is_asked.any() else ():
                found = counts.by_pattern(predicate, position)
                sizes = found.index.spans(found.pattern.located(facts)[0])[1] * is_asked
                self.patterns.append(_RuleFacts(found, counts.left_out(predicate, position), facts, sizes, is_asked))
        self.entries = sum(int(pattern.sizes.sum()) for pattern in self.patterns)

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The facts that a rule may conclude."""
        asked = [pattern.facts[pattern.is_asked] for pattern in self.patterns]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *asked])), np.zeros(0, np.int64)

    def epoch(self, generator: torch.Generator) -> Iterator[RuleStep]:
        """The steps of one epoch; of very many entries, a sample."""
        rate = min(1.0, ENTRIES_AN_EPOCH / max(1, self.entries))
        cuts: list[tuple[_RuleFacts, np.ndarray]] = []
        for pattern in self.patterns:
            facts = np.flatnonzero(pattern.sizes)
            order = facts[torch.randperm(len(facts), generator=generator).numpy()][: int(np.ceil(len(facts) * rate))]
            if len(order):
                number = np.cumsum(pattern.sizes[order]) // ENTRIES_AT_ONCE
                cuts += [(pattern, part) for part in np.split(order, np.flatnonzero(np.diff(number)) + 1)]
        order = torch.randperm(len(cuts), generator=generator).tolist()
        mean = sum(len(part) for _, part in cuts) / max(1, len(cuts))
        return (_rule_step(*cuts[i], weight=len(cuts[i][1]) / mean) for i in order)


def _rule_step(pattern: _RuleFacts, numbers: np.ndarray, *, weight: float) -> RuleStep:
    counts, left_out = pattern.counts, pattern.left_out
    rows, candidates = counts.pattern.located(pattern.facts[numbers])
    fact, entry = counts.index.entries(rows)
    number = counts.counts[entry].copy()
    begins = np.cumsum(pattern.sizes[numbers]) - pattern.sizes[numbers]
    first = entry[begins]  # each of these facts has an entry
    owner, less = ranges(left_out.starts[numbers], left_out.starts[numbers + 1] - left_out.starts[numbers])
    np.subtract.at(number, begins[owner] + left_out.entries[less] - first[owner], left_out.counts[less])
    is_true = counts.candidates[entry] == candidates[fact]
    kept = (number > 0) & (is_true | ~counts.is_fact[entry])
    return RuleStep(
        counts.pattern.predicate,
        counts.pattern.position,
        len(numbers),
        torch.from_numpy(fact[kept]),
        torch.from_numpy(counts.rules[entry[kept]]),
        torch.from_numpy(np.log(number[kept])).float(),
        torch.from_numpy(is_true[kept]),
        weight,
    )


def start_at_confidence(counted: CountedRules, counts: RuleCounts) -> None:
    """Set w_j to the log of the confidence of rule j."""
    logs = torch.from_numpy(np.log(counts.confidences)).float()
    with torch.no_grad():
        counted.weights.copy_(logs.unsqueeze(1).expand_as(counted.weights))
