"""Emb^0(a) from a logistic regression on constants' features and counted clauses, fitted before the training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import csr_array, hstack, vstack
from torch import Tensor, nn

from r2n.data.features import WORD_MATCHES, pair_counts, word_matches
from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.grounding.clauses import DecidedAtoms
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule
from r2n.network.constant_embedding import Channel, ConstantEmbedding, ModuleChannel, VectorChannel, WordChannel
from r2n.network.input_layers import AtomEmbedding
from r2n.network.pair_embedding import COUNTS
from r2n.network.tensors import Tensors
from r2n.options import ModelOptions

FOLDS = 5
MOST_VALUES = 50  # of a position, each with weights of its own
MOST_EXAMPLES = 50_000  # of a predicate and a truth
STRENGTHS = np.logspace(-4, 3, 8)  # C of scikit-learn: the inverse of the penalty
HALF_STEP = np.sqrt(10)
NO_CODES = np.zeros(0, np.int64)
FEWEST = 3  # examples of each truth


@dataclass(frozen=True, slots=True)
class Input:
    """What a predicate's regression reads: a channel (by number) at one position or compared at two, or (no position)
    how many ground clauses of each rule decide the atom.
    """

    channel: int
    positions: tuple[int, ...]

    @property
    def key(self) -> str:
        """A name for its weights."""
        return f"channel{self.channel}-" + "".join(f"at{i}" for i in self.positions) if self.positions else "rules"


@dataclass(frozen=True, eq=False)
class Block(Tensors):
    """The atoms (rows) of a predicate that has inputs: for each input its rows or its comparisons, values and folds."""

    predicate: int
    atoms: Int64[Tensor, " atoms"]
    inputs: tuple[Tensor, ...]
    values: Int64[Tensor, " atoms"]
    folds: Int64[Tensor, " atoms"]


@dataclass(frozen=True, eq=False)
class RegressionBatch(Tensors):
    """Atoms of one arity."""

    predicates: Int64[Tensor, " atoms"]
    blocks: tuple[Block, ...]


class Regression(AtomEmbedding):
    """A logistic regression's logit z along a learned direction of the predicate, with a learned offset, and z itself.

    A predicate has weights for the features at each of its positions, or for comparisons of two constants' features if
    both positions have the same. If one more position has few constants, each of these has its own weights, and for a
    functional predicate they exclude each other. Of other predicates of several positions, it also reads how many
    ground clauses decide the atom. The weights are fitted once for each of `FOLDS` parts of the labelled first
    constants, on the others, and once on all: a training atom is read by weights that never saw its label, any other
    atom by the last. So the layers above learn how far the regression is to be trusted. Learned with them is a shift
    of each predicate's logit: rules that speak for every atom alike say less than they seem to.
    """

    fold_of: Tensor
    same_as: Tensor | None = None  # of copies of constants with other features: whose labels and clauses they have
    tells_labels = False

    def __init__(
        self, knowledge: KnowledgeBase, channels: Sequence[Channel], constants: ConstantEmbedding, options: ModelOptions
    ) -> None:
        """`constants` has no vectors that are read."""
        super().__init__()
        language, self.constant_dim, self.dim = knowledge.language, constants.dim, max(2, options.dim)
        count = max(1, len(language.predicates))
        self.direction = nn.Parameter(torch.randn(count, self.dim - 1) * 0.3)
        self.offset = nn.Parameter(torch.randn(count, self.dim - 1) * 0.3)
        self.shift = nn.Parameter(torch.zeros(count), requires_grad=options.has_layers)
        self.channels = nn.ModuleList(channels)
        names, labelled = language.constants, knowledge.training_first_constants
        self.labelled = knowledge.training_constants
        for predicate in language.predicates:
            if predicate.arity == 1 and not predicate.closed and not len(knowledge.false_facts(predicate)):
                labelled = np.union1d(labelled, language.members(predicate.domains[0]))  # all others are asked as false
        self.fold_of = torch.full((len(names),), FOLDS)
        self.fold_of[torch.from_numpy(labelled)] = torch.tensor(
            [crc32(names[i].encode()) % FOLDS for i in labelled], dtype=torch.int64
        )
        self.decided = dict[int, DecidedAtoms]()
        self.inputs, self.value_of = dict[int, tuple[Input, ...]](), dict[int, tuple[int, Int64[np.ndarray, " _"]]]()
        self.weights = nn.ParameterDict()
        self.is_functional = [predicate.functional for predicate in language.predicates]
        for i, predicate in enumerate(language.predicates):
            self._add(i, predicate, knowledge)

    def know(self, knowledge: KnowledgeBase) -> None:
        """Count in other facts from now on."""
        self.decided = {i: DecidedAtoms(knowledge, part.predicate) for i, part in self.decided.items()}

    def clauses(self, base: HerbrandBase, code: int) -> list[tuple[Rule, Int64[np.ndarray, " positions"], float]]:
        """The ground clauses that decide an atom, and what the logit loses without one of them."""
        index, arguments = base.decode(np.array([code]))
        decided = self.decided.get(int(index[0]))
        if decided is None:
            return []
        own = torch.from_numpy(arguments[:, : decided.predicate.arity])
        (block,) = self.collate(torch.from_numpy(index), own, ConstantEmbedding(0, 1, dropout=0.0)).blocks
        grounded, found = decided.ground_clauses(code), []
        for j, (rule, atoms) in enumerate(zip(decided.rules, grounded, strict=True)):
            fewer = block.inputs[-1].clone()
            fewer[0, j] = np.log1p(max(0, len(atoms) - 1))
            less = replace(block, inputs=(*block.inputs[:-1], fewer))
            effect = float(self._logits(block)[0] - self._logits(less)[0]) if len(atoms) else 0.0
            found += [(rule, codes, effect) for codes in atoms]
        return found

    def _add(self, index: int, predicate: Predicate, knowledge: KnowledgeBase) -> None:
        """The inputs and weights of a predicate, unless it is closed or has neither features nor rules."""
        language = knowledge.language
        members = [language.members(domain) for domain in predicate.domains]
        has = np.array(
            [[bool((c.row_of[torch.from_numpy(m)] >= 0).any()) for m in members] for c in self._read], bool
        ).reshape(len(self._read), len(members))
        is_decided = not predicate.closed and len(members) > 1 and not predicate.functional
        decided = DecidedAtoms(knowledge, predicate) if is_decided else None
        rules = 0 if decided is None else len(decided.rules)
        if predicate.closed or not (has.any() or rules):
            return
        same = [c for c in range(len(has)) if len(members) == 2 and has[c].all()]
        found = [Input(c, (0, 1)) for c in same]
        found += [Input(c, (i,)) for c in range(len(has)) if c not in same for i in np.flatnonzero(has[c]).tolist()]
        if decided is not None and rules:
            self.decided[index] = decided
            self.reads_facts = True
            found.append(Input(-1, ()))
        plain = [i for i in range(len(members)) if has.any() and not has[:, i].any()]
        outputs = 1
        if len(plain) == 1 and len(members[plain[0]]) <= MOST_VALUES:
            (position,) = plain
            outputs = len(members[position])
            self.value_of[index] = position, np.sort(members[position])
        self.inputs[index] = tuple(found)
        for part in found:
            sizes = (lambda _: rules), (lambda c: self._read[c].size), self._compared
            size = sizes[len(part.positions)](part.channel)
            weight = nn.Parameter(torch.zeros(size, outputs * (FOLDS + 1)), requires_grad=False)
            self.weights[f"{index}-{part.key}"] = weight
        self.weights[f"{index}-bias"] = nn.Parameter(torch.zeros(1, outputs * (FOLDS + 1)), requires_grad=False)

    @property
    def _read(self) -> list[Channel]:
        """The channels, without modules of the caller, whose output changes as they are trained."""
        return [part for part in self.channels if isinstance(part, Channel) and not isinstance(part, ModuleChannel)]

    def _compared(self, channel: int) -> int:
        """How many comparisons of two constants a channel gives."""
        part = self._read[channel]
        if isinstance(part, WordChannel):
            return COUNTS + WORD_MATCHES * (part.bags.token == "char")
        return 2 * part.size

    def collate(
        self,
        predicates: Int64[Tensor, " atoms"],
        arguments: Int64[Tensor, "atoms positions"],
        constants: ConstantEmbedding,
    ) -> RegressionBatch:
        """Atoms of one arity, collated once for all passes."""
        blocks = []
        for index, inputs in self.inputs.items():
            atoms = (predicates == index).nonzero().flatten()
            if not len(atoms):
                continue
            own = arguments[atoms]
            same = own if self.same_as is None else self.same_as[own]
            read = []
            for part in inputs:
                if not part.positions:
                    decided = self.decided[index]
                    codes = decided.knowledge.base.encode(decided.predicate, same.numpy())
                    read.append(torch.from_numpy(decided.counts(codes)))
                    continue
                channel = self._read[part.channel]
                rows = channel.row_of[own[:, list(part.positions)]]
                read.append(rows[:, 0] if len(part.positions) == 1 else _comparisons(channel, rows))
            position, values = self.value_of.get(index, (0, np.zeros(0, np.int64)))
            value = torch.from_numpy(np.searchsorted(values, same[:, position].numpy()))  # 0 without values
            value = value.clamp(max=max(0, len(values) - 1))
            blocks.append(Block(index, atoms, tuple(read), value, self.fold_of[same[:, 0]]))
        return RegressionBatch(predicates, tuple(blocks))

    def forward(self, atoms: RegressionBatch, constants: ConstantEmbedding) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a); its last component is the regression's logit."""
        logits = self.offset.new_zeros(len(atoms.predicates))
        for block in atoms.blocks:
            logits[block.atoms] = self._logits(block)
        logits = logits + self.shift[atoms.predicates]
        vectors = logits.unsqueeze(1) * self.direction[atoms.predicates] + self.offset[atoms.predicates]
        return torch.cat([vectors, logits.unsqueeze(1)], dim=1)

    @torch.no_grad()
    def _logits(self, block: Block) -> Float[Tensor, " atoms"]:
        """The logits of the atoms of one predicate."""
        total = self.weights[f"{block.predicate}-bias"].expand(len(block.atoms), -1)
        for part, rows in zip(self.inputs[block.predicate], block.inputs, strict=True):
            weight = self.weights[f"{block.predicate}-{part.key}"]
            if len(part.positions) != 1:
                total = total + rows @ weight
                continue
            channel = self._read[part.channel]
            table = channel.times(weight, None) if isinstance(channel, WordChannel) else channel.vectors @ weight
            total = total + torch.where((rows >= 0).unsqueeze(1), table[rows.clamp(min=0)], 0.0)
        found = total.unflatten(1, (-1, FOLDS + 1))
        if self.is_functional[block.predicate] and found.shape[1] > 1:  # log p(value) / (1 - p(value))
            logs = found.log_softmax(1)
            found = logs - torch.log1p(-logs.exp().clamp(max=1 - 1e-6))
        found = found[torch.arange(len(found), device=found.device), block.values]
        return found.gather(1, block.folds.unsqueeze(1)).squeeze(1)

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """The regression's logit."""
        return embedding[:, -1]

    def fit(self, base: HerbrandBase, true: Codes, false: Codes, queries: Codes = NO_CODES) -> None:
        """Fit the weights to the atoms that training asks for; held-out loss chooses the penalty.

        Ground clauses are counted up to three times for each atom: without its own label, without all labels of its
        part, and without any. These ways weigh as many of the `queries` as have a first constant that training
        labels, another one, and none.
        """
        dice = np.random.default_rng(0)
        bounds = [np.searchsorted(part, base.offsets) for part in (true, false)]
        for index in self.inputs:
            parts = [codes[b[index] : b[index + 1]] for codes, b in zip((true, false), bounds, strict=True)]
            parts = [dice.choice(p, MOST_EXAMPLES, replace=False) if len(p) > MOST_EXAMPLES else p for p in parts]
            if min(map(len, parts)) < FEWEST and not self.is_functional[index]:
                continue
            arguments = base.decode(np.concatenate(parts))[1][:, : len(base.shapes[index])]
            labels = np.repeat([1, 0], [len(part) for part in parts])
            empty = torch.full((len(labels),), index)
            (block,) = self.collate(empty, torch.from_numpy(arguments), ConstantEmbedding(0, 1, dropout=0.0)).blocks
            design, weights = self._design(block), np.ones(len(labels))
            if index in self.decided:
                codes = base.encode(base.language.predicates[index], arguments)
                asked = queries[(queries >= base.offsets[index]) & (queries < base.offsets[index + 1])]
                shares = self._shares(base.decode(asked)[1][:, : arguments.shape[1]])
                views = [self._hidden(block, codes, way) for way, share in enumerate(shares) if share]
                design = csr_array(vstack([self._design(view) for view in views], format="csr"))
                many = {name: getattr(block, name).repeat(len(views)) for name in ("atoms", "values", "folds")}
                block, weights = replace(block, **many), np.repeat([share for share in shares if share], len(labels))
                labels = np.tile(labels, len(views))
            self._fit_predicate(block, design, labels, weights)

    def _shares(self, asked: Int64[np.ndarray, "atoms positions"]) -> list[float]:
        """Of queries, the shares of those whose first constant training labels, another one alone, and none."""
        if not len(asked):
            return [0.5, 0.5, 0.0]
        first = self.fold_of[torch.from_numpy(asked[:, 0])].numpy() < FOLDS
        some = first | np.isin(asked, self.labelled).any(axis=1)
        return [float(part.mean()) for part in (first, some & ~first, ~some)]

    def _hidden(self, block: Block, codes: Codes, way: int) -> Block:
        """The same atoms with fewer ground clauses: 0, none fewer; 1, those without labels of the first constants of
        the atom's part; 2, those without any label.
        """
        decided, counts = self.decided[block.predicate], block.inputs[-1].clone()
        knowledge, folds = decided.knowledge, block.folds.numpy()
        evidence, base = knowledge.evidence, knowledge.base
        is_open = ~closed_atoms(base, evidence.atoms)
        fold_of_label = self.fold_of[base.decode(evidence.atoms)[1][:, 0]].numpy()
        for fold in range(FOLDS) if way else ():
            kept, own = ~(is_open & ((way == 2) | (fold_of_label == fold))), folds == fold
            known = replace(knowledge, evidence=Evidence(evidence.atoms[kept], evidence.truth[kept]))
            counts[own] = torch.from_numpy(DecidedAtoms(known, decided.predicate).counts(codes[own]))
        return replace(block, inputs=(*block.inputs[:-1], counts))

    def _fit_predicate(
        self, block: Block, design: csr_array, labels: Int64[np.ndarray, " atoms"], of: Float[np.ndarray, " atoms"]
    ) -> None:
        """The weights of a predicate from a design matrix; `of` is how much each of its atoms counts."""
        folds, values = block.folds.numpy(), block.values.numpy()
        bias = self.weights[f"{block.predicate}-bias"]
        outputs = bias.shape[1] // (FOLDS + 1)
        if self.is_functional[block.predicate] and outputs > 1:
            true = labels == 1
            weights, offsets = _fitted(design[true], values[true], folds[true], of[true], outputs)
        else:
            each = ((design[own], labels[own], folds[own], of[own]) for v in range(outputs) for own in [values == v])
            fits = [_fitted(*part, 1) for part in each]
            weights, offsets = (np.concatenate(part, axis=-2) for part in zip(*fits, strict=True))
        bias.copy_(torch.from_numpy(offsets).flatten())
        start = 0
        for part in self.inputs[block.predicate]:
            weight = self.weights[f"{block.predicate}-{part.key}"]
            weight.copy_(torch.from_numpy(weights[start : start + len(weight)]).flatten(1))
            start += len(weight)

    def _design(self, block: Block) -> csr_array:
        """The features of atoms, input by input."""
        parts = []
        for part, rows in zip(self.inputs[block.predicate], block.inputs, strict=True):
            if len(part.positions) != 1:
                parts.append(csr_array(rows.numpy()))
                continue
            channel = self._read[part.channel]
            assert isinstance(channel, WordChannel | VectorChannel)
            if isinstance(channel, WordChannel):
                matrix = channel.bags.known
            else:
                matrix = csr_array(channel.vectors.cpu().numpy())
            known = rows.numpy()
            taken = csr_array(matrix[known.clip(0)])
            parts.append(csr_array(taken.multiply((known >= 0)[:, None])))
        return csr_array(hstack(parts, format="csr"))


def _comparisons(channel: Channel, rows: Int64[Tensor, "atoms two"]) -> Float[Tensor, "atoms comparisons"]:
    """Two constants' features compared; zeros if one has none."""
    known, safe = (rows >= 0).all(1), rows.clamp(min=0)
    if isinstance(channel, WordChannel):
        bags, pairs = channel.bags, safe.numpy().T
        of_words = [word_matches(bags.texts, *pairs)] if bags.token == "char" else []
        found = torch.from_numpy(np.concatenate([pair_counts(bags, *pairs), *of_words], axis=1))
    else:
        assert isinstance(channel, VectorChannel)
        one, other = channel.vectors[safe[:, 0]].cpu(), channel.vectors[safe[:, 1]].cpu()
        found = torch.cat([(one - other).abs(), one * other], dim=1)
    return torch.where(known.unsqueeze(1), found, 0.0)


def _fitted(
    design: csr_array,
    labels: Int64[np.ndarray, " atoms"],
    folds: Int64[np.ndarray, " atoms"],
    of: Float[np.ndarray, " atoms"],
    classes: int,
) -> tuple[Float[np.ndarray, "inputs classes folds"], Float[np.ndarray, "classes folds"]]:
    """The weights without each fold and with all, and the intercepts; without two classes, the weights are zero.

    `of`: how much each atom counts. The best of `STRENGTHS` by held-out likelihood is compared with half a step to
    either side.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second to import

    shape = len(csr_array(design.T).indptr) - 1, classes, FOLDS + 1

    def fit(strength: float) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The likelihood of what is held out, the strength, the weights and the intercepts."""
        weights, offsets, held_out = np.zeros(shape), np.zeros((classes, FOLDS + 1)), 0.0
        for fold in range(FOLDS + 1):  # the last fit leaves none out
            rest, own = (folds != fold) | (fold == FOLDS), (folds == fold) & (fold < FOLDS)
            offsets[:, fold] = _prior(labels[rest], classes)
            kinds = np.unique(labels[rest])
            if len(kinds) > 1:
                model = LogisticRegression(C=strength, max_iter=200).fit(design[rest], labels[rest], of[rest])
                if classes == 1:
                    weights[:, 0, fold], offsets[0, fold] = model.coef_[0], model.intercept_[0]
                else:
                    both = np.stack([-model.coef_[0], model.coef_[0]]) / 2 if len(kinds) == 2 else model.coef_
                    starts = np.array([-1, 1]) * model.intercept_ / 2 if len(kinds) == 2 else model.intercept_
                    offsets[:, fold] = starts.min() - 5.0
                    weights[:, kinds, fold], offsets[kinds, fold] = both.T, starts
            scores = design[own] @ weights[:, :, fold] + offsets[:, fold]
            if classes == 1:
                held_out -= float(of[own] @ np.logaddexp(0, np.where(labels[own] == 1, -scores[:, 0], scores[:, 0])))
            else:
                logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
                held_out += float(of[own] @ logs[np.arange(len(scores)), labels[own]])
        return held_out, strength, weights, offsets

    best = max(map(fit, STRENGTHS), key=itemgetter(0))
    _, _, weights, offsets = max(best, fit(best[1] * HALF_STEP), fit(best[1] / HALF_STEP), key=itemgetter(0))
    return weights, offsets


def _prior(labels: Int64[np.ndarray, " atoms"], classes: int) -> Float[np.ndarray, " classes"]:
    """The logit of each class's share, a little towards the middle."""
    counts = np.bincount(labels, minlength=max(2, classes)) + 0.5
    return np.log(counts[1:] / counts[0]) if classes == 1 else np.log(counts / counts.sum())
