"""Calibration of the probabilities of a run."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, are_among, closed_atoms
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import TRAIN
from r2n.errors import CheckpointError, DataError, counted
from r2n.evaluation.by_query import RankedQueries
from r2n.evaluation.calibrate import (
    FEWEST_LABELS,
    Calibrated,
    fit_in_rows,
    fit_share,
    fit_temperature,
    unless_contradicted,
    warmed,
)
from r2n.evaluation.metrics import drawn
from r2n.evaluation.ranking import EvaluationOptions, Filter, probabilities, rank, row_features, row_scores
from r2n.files import read_file
from r2n.model.run import Run
from r2n.network.paths import UNREACHED
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from r2n.store.checkpoint import checkpoint_digest, write_atomically
from r2n.store.folder import RunFolder, digest
from r2n.training.batches import Step
from r2n.training.negatives import asked_positions, corrupted_facts, corruption_groups, corruptions, labelled_shares

FORMAT = 1
MOST_FACTS = 500  # of a ranking's validation
FIRST = 10  # others of a row that are all asked: those with the highest logits
CORRUPTIONS = 20  # of each, at each position
MOST_UNKNOWN = 4.0  # queries to a validation fact
PRIOR_OF_SLOPE = 2.0  # of positives alone: the precision of the belief, in labels, that no temperature is needed
MOST_RANKED = 100  # facts, to see how often the first answer is right
LEAST_SHARE = 0.5  # of that, the mean probability of right first answers
MOST_SCORES = 2**28  # where each atom needs complete rows of them: rules that are counted
PARTS = 10  # of what can be hidden: each is hidden once, while the others are not
MOST_STEPS = 20  # of an epoch in batches of queries
HINT = "delete it, and r2n train P --out DIR --resume fits it again; until then probabilities are not calibrated"


def calibrate(run: Run) -> Calibrated | None:
    """The calibration of a trained run; None without labels to fit it on."""
    logits, options = run.logits(), run.options
    if (by_prior := _by_prior(run, logits)) is not None:
        return by_prior
    valid = run.problem.queries.get("valid", Evidence.empty())
    if not len(valid):
        return _on_hidden_facts(run, logits)
    words, weights = counted(len(valid), "validation query", "validation queries"), np.ones(len(valid))
    base, train, is_drawn = run.problem.knowledge.base, run.problem.train, bool(valid.truth.all())
    atoms, truth, compares = valid.atoms, valid.truth, options.training.compares_facts
    has_rows = compares and (logits.full_pass is not None or not logits.model.layers)  # else each atom is grounded
    if is_drawn:
        atoms, truth, weights, words = _drawn(run, logits, has_rows=has_rows)
    found, hidden = logits(atoms), None
    reached = found > (-np.inf if logits.model.paths is None else UNREACHED / 2)  # by paths; others have no logit
    atoms, truth, weights, found = atoms[reached], truth[reached], weights[reached], found[reached]
    groups = query_groups(base, atoms, truth)
    fitted = fit_temperature(found, truth, groups, fitted_on=words, compares=compares, weights=weights)
    are_apart = found[truth].min(initial=np.inf) > found[~truth & (weights > 0)].max(initial=-np.inf)
    if fitted is None or are_apart:
        hidden = _on_hidden_facts(run, logits)
        fitted = hidden or fitted
        if fitted is not None and not compares:
            fitted = warmed(fitted, found, truth, groups, fitted_on=words, weights=weights)
    if is_drawn and fitted is None:
        too_few = "training asks no corruption of them" if truth.all() else f"{words} are too few"
        return Calibrated(1.0, 0.0, words, f"the validation queries are all true, and {too_few}")
    if fitted is None:
        return None
    fitted = replace(fitted, on_validation=fitted is not hidden)
    share = _share(run, logits) if has_rows else None
    if fitted.is_as_trained and not fitted.why_not:
        return replace(unless_contradicted(fitted, found, truth, weights, words), share=share)
    if has_rows and fitted is not hidden:
        features = row_features(logits, atoms, found, base, train.facts)
        fitted = replace(fitted, by_rows=fit_in_rows(features, truth, groups, weights))
    fitted = _in_bounds(fitted, run, logits, atoms[truth]) if is_drawn else fitted
    return replace(fitted, share=share)


def _by_prior(run: Run, logits: AtomLogits) -> Calibrated | None:
    """Of predicates with true facts alone: the shift by which as many atoms are true as was assumed; None of others.

    A logit says how probably an atom is true, whether it was labelled or not; of an unlabelled one this is less. The
    validation facts stand for all true atoms, and are taken out of the unlabelled ones, which then stand for all false
    ones: these give the temperature.
    """
    from scipy.optimize import brentq

    base, train, prior = run.problem.knowledge.base, run.problem.train.facts, run.options.training.prior
    predicates = np.flatnonzero(labelled_shares(base, run.problem.train, 1.0) < 1)
    if prior is None or not len(predicates):
        return None
    every = np.concatenate([np.arange(*base.offsets[i : i + 2]) for i in predicates])
    unlabelled, facts = every[~are_among(every, train)], run.problem.valid.facts
    left, asked = prior * len(every) - (len(every) - len(unlabelled)), run.problem.atoms
    if not 0 < left < len(unlabelled) or not are_among(asked[~closed_atoms(base, asked)], every).all():
        return Calibrated(1.0, 0.0, "", "nothing is labelled false, and the share of true atoms was assumed")
    words = f"{counted(len(unlabelled), 'unlabelled atom')}, {100 * prior:.3g} % of all atoms assumed to be true"
    temperature, found, sizes = 1.0, logits(unlabelled), [len(unlabelled), len(facts), len(facts)]
    if len(facts) >= FEWEST_LABELS:
        own = logits(facts)
        fitted = fit_temperature(
            np.concatenate([found, own, own]),
            np.repeat([False, False, True], sizes),
            np.concatenate([unlabelled, facts, facts]),
            fitted_on=words,
            compares=True,
            weights=np.repeat([len(facts) / left, -1.0, prior * len(every) / left], sizes),
            prior=PRIOR_OF_SLOPE,
        )
        temperature = 1.0 if fitted is None else fitted.temperature
    farthest, labelled = float(np.abs(found).max()) + 50.0 * temperature, 1 - left / (prior * len(every))

    def excess(shift: float) -> float:
        true = expit((found - shift) / temperature)
        return float((true * (1 - labelled) / (1 - labelled * true)).sum()) - left

    shift: Any = brentq(excess, -farthest, farthest)
    return Calibrated(temperature, shift, words)


def _drawn(run: Run, logits: AtomLogits, *, has_rows: bool) -> tuple[Codes, np.ndarray, np.ndarray, str]:
    """True validation facts, and atoms that are taken for false: codes, labels, weights, and words for them."""
    codes, truth, share = (_with_candidates if has_rows else _with_corruptions)(run, logits)
    labels, back = np.unique(2 * codes + truth, return_inverse=True)
    asked, truth, stands_for = labels // 2, labels % 2 == 1, np.bincount(back, share, len(labels))
    facts, (noun, of) = int(truth.sum()), ("candidate", "their rows") if has_rows else ("corruption", "them")
    others = len(np.setdiff1d(asked, asked[truth]))
    words = f"{counted(facts, 'validation fact')} and {counted(others, noun)} of {of}"
    return asked, truth, stands_for / (stands_for[truth].mean() if truth.any() else 1.0), words


def _in_bounds(fitted: Calibrated, run: Run, logits: AtomLogits, facts: Codes) -> Calibrated:
    """A calibration on true facts alone, unless it makes right answers improbable: then none.

    Of validation facts that come first in their rows, the mean probability is at least a half (`LEAST_SHARE`) of the
    share of facts that come first. It is not where corruptions are often true, or where the logits of rows are so far
    apart that no single temperature and shift fits them.
    """
    if fitted.is_as_trained or not len(facts):
        return fitted
    problem, positions = run.problem, run.options.training.corrupted_positions
    ranked_positions = None
    if positions is not None and not run.options.grounding.reciprocal:
        most = max(map(len, problem.knowledge.base.shapes))
        ranked_positions = tuple(p for p in positions if -most <= p < most)
    queries, base = Evidence(facts, np.ones(len(facts), bool)), problem.knowledge.base
    options = EvaluationOptions(ranked_positions, sample=min(MOST_RANKED, len(facts)))
    report = rank(logits, queries, base, Filter.from_problem(problem, (TRAIN, "valid")), options)
    assert isinstance(report.by_query, RankedQueries)
    first = report.by_query.atoms[report.by_query.realistic == 1]
    if len(first) < FEWEST_LABELS:
        return fitted
    known, share = problem.train.facts, report.metrics["hits@1"]
    mean = float(probabilities(fitted, logits, first, logits(first), base=base, known=known).mean())
    if mean >= LEAST_SHARE * share:
        return fitted
    why = f"fitted on {fitted.fitted_on}, right first answers would have a mean probability of {mean:.3f}, though"
    return Calibrated(1.0, 0.0, fitted.fitted_on, f"{why} {100 * share:.0f} % of first answers are right")


def query_groups(base: HerbrandBase, atoms: Codes, truth: np.ndarray) -> np.ndarray:
    """A group for each query, such that only queries of one group are likely to be right or wrong together.

    Constants that true queries join are one group, as the spellings of one name are; a false query is with its first
    constant. A group of more than half of all queries is no such thing: there each first constant is one.
    """
    first, constants = base.decode(atoms)[1], len(base.language.constants)
    links = first[truth]
    start, end = (np.repeat(links[:, :1], links.shape[1], axis=1)[links >= 0], links[links >= 0])
    graph = coo_array((np.ones(len(start)), (start, end)), shape=(constants, constants))
    group = connected_components(graph, directed=False)[1][first[:, 0]]
    is_large = (np.bincount(group) > len(atoms) / 2)[group]
    return np.where(is_large, constants + first[:, 0], group)


def _with_corruptions(run: Run, logits: AtomLogits) -> tuple[Codes, np.ndarray, np.ndarray]:
    """Validation facts and those of their corruptions that training would ask: codes, labels, and for how many atoms
    each stands.

    Corruptions are drawn, none twice, and stand for a share of all candidates; a fact stands for one atom. Those of a
    reciprocal, which is asked at the last position, are those of its predicate at the first.
    """
    base, options, generator = run.problem.knowledge.base, run.options, np.random.default_rng(0)
    valid, train = run.problem.valid.atoms, run.problem.train
    most = MOST_FACTS if logits.model.counted is None else MOST_SCORES // (4 * CORRUPTIONS * _widest(base))
    facts = valid[drawn(len(valid), max(1, min(MOST_FACTS, most)), 0)]
    known = np.concatenate([valid, train.facts])
    atoms, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for part, positions in corrupted_facts(base, facts, options.training):
        if options.grounding.reciprocal and positions is not None:
            positions = (*positions, *(-3 - p if p < 0 else 1 - p for p in positions))
        for _, position, which, members in corruption_groups(base, part, positions):
            some = corruptions(base, part[which], known, positions=[position], samples=CORRUPTIONS, generator=generator)
            atoms += [some.facts, some.atoms.ravel()]
            weights += [np.ones(len(some.facts)), np.full(some.atoms.size, len(members) / some.atoms.shape[1])]
    codes, share = np.concatenate(atoms), np.concatenate(weights)
    return codes[codes >= 0], np.isin(codes, valid)[codes >= 0], share[codes >= 0]


def _rows_of_facts(run: Run, logits: AtomLogits, most: int) -> Iterator[tuple[Codes, np.ndarray, np.ndarray, int]]:
    """The candidates of some validation facts' rows that are not known, their logits, which are validation facts, and
    how many of these facts the row was drawn for.

    The rows are those that training would compare, but of both positions where there are reciprocals.
    """
    base, options, train = run.problem.knowledge.base, run.options, run.problem.train
    valid, known = run.problem.valid.facts, train.facts
    facts = valid[drawn(len(valid), max(1, most), 0)]
    for part, positions in corrupted_facts(base, facts, options.training):
        for i in np.unique(base.decode(part)[0]).tolist():
            for position in asked_positions(None if options.grounding.reciprocal else positions, len(base.shapes[i])):
                pattern = QueryPattern.from_base(base, i, position)
                own = part[slice(*np.searchsorted(part, pattern.bounds))]
                for row, facts_of_row in zip(*np.unique(pattern.located(own)[0], return_counts=True), strict=True):
                    codes = row + pattern.stride * np.arange(pattern.candidates)
                    is_open = ~are_among(codes, known)
                    scores = row_scores(logits, pattern, np.array([row]))[0].astype(np.float64)
                    yield codes[is_open], scores[is_open], are_among(codes[is_open], valid), int(facts_of_row)


def _with_candidates(run: Run, logits: AtomLogits) -> tuple[Codes, np.ndarray, np.ndarray]:
    """Validation facts and candidates of their rows: codes, labels, and for how many each stands.

    Of each row these are all validation facts, those with the highest logits (`FIRST`), and some of the others.

    A row is drawn for one fact. Its other candidates are unlabelled: if the splits were drawn at random, for each one
    that is a validation fact there are as many true ones on average as there are queries to validation facts
    (`unknown`). So each other validation fact stands for that many true atoms, and for as many fewer false ones.
    """
    generator, widest = np.random.default_rng(0), _widest(run.problem.knowledge.base)
    atoms, labels, weights = [np.zeros(0, np.int64)], [np.zeros(0, bool)], [np.zeros(0)]
    most = min(MOST_FACTS, MOST_SCORES // (2 * (FIRST + CORRUPTIONS) * widest))
    queries = np.concatenate([part.atoms for part in run.problem.queries.values()])  # no label of theirs is read
    unknown = min(MOST_UNKNOWN, len(np.unique(queries)) / max(1, len(run.problem.valid.facts)))
    for codes, scores, truth, drawn_for in _rows_of_facts(run, logits, most):
        false, own = np.flatnonzero(~truth)[np.argsort(-scores[~truth], kind="stable")], np.flatnonzero(truth)
        some, others = generator.permutation(false[FIRST:])[:CORRUPTIONS], len(own) - 1
        share, rest = drawn_for / max(1, len(own)), len(false[FIRST:]) / max(1, len(some))
        parts = [(own, True, share * (1 + unknown * others)), (own, False, -share * (unknown - 1) * others)]
        for part, label, weight in (*parts, (false[:FIRST], False, drawn_for), (some, False, drawn_for * rest)):
            atoms.append(codes[part])
            labels.append(np.full(len(part), label))
            weights.append(np.full(len(part), float(weight)))
    return np.concatenate(atoms), np.concatenate(labels), np.concatenate(weights)


def _widest(base: HerbrandBase) -> int:
    return max((max(shape, default=1) for shape in base.shapes), default=1)


def _share(run: Run, logits: AtomLogits) -> float | None:
    """The temperature of rows at which their validation facts are likeliest; other such facts are no candidates."""
    most = min(MOST_FACTS, MOST_SCORES // (2 * _widest(run.problem.knowledge.base)))
    rows = ((scores, truth) for _, scores, truth, _ in _rows_of_facts(run, logits, most) if not truth.all())
    return fit_share(
        [(np.append(scores[~truth], own), int((~truth).sum())) for scores, truth in rows for own in scores[truth]]
    )


def _on_hidden_facts(run: Run, logits: AtomLogits) -> Calibrated | None:
    """Fitted on training atoms whose input is hidden; None if the network never learned to do without it."""
    training = run.options.training
    if not logits.model.layers:
        return None
    asked = [
        hidden_logits(step, logits.models, by_atom=training.hide_by == "atom")
        for step in islice(run.trainer.batches.epoch(torch.Generator().manual_seed(0)), MOST_STEPS)
        if isinstance(step, Step) and (training.hiding > 0 or step.leaves_out)
    ]
    if not asked:
        return None
    found, truth, atoms = (np.concatenate(part) for part in zip(*asked, strict=True))
    groups = query_groups(logits.model.base, atoms, truth)
    words = f"{counted(int(truth.sum()), 'hidden training fact')} and {counted(int((~truth).sum()), 'negative')}"
    compares = training.compares_facts  # without a shift: negatives are as many as one likes
    return fit_temperature(found, truth, groups, fitted_on=words, compares=compares, may_shift=False)


def hidden_logits(step: Step, models: tuple[R2N, ...], *, by_atom: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean logits of what a step asks, their labels and their codes.

    Each atom is asked while its input, and that of a part of the others, is hidden.
    """
    targets, by = step.targets, step.targets.first_constants.cpu().numpy()
    by = np.arange(len(by)) if by_atom else by
    part_of = np.random.default_rng(0).integers(PARTS, size=int(by.max(initial=0)) + 1)[by]
    asked = targets.asked[targets.open_atoms[targets.asked]]
    found, rows = np.zeros(len(asked)), asked.cpu().numpy()
    for part in range(PARTS):
        hidden = torch.from_numpy(part_of == part).to(asked.device) & targets.open_atoms
        for model in models:
            model.eval()
            with torch.no_grad():
                out = model(step.batch, hidden=hidden, known=step.known, rule_outputs=False).atoms
            found += np.where(part_of[rows] == part, out[asked].double().cpu().numpy(), 0.0) / len(models)
    return found, (targets.labels[asked] == 1).cpu().numpy(), step.batch.graph.atoms[asked].cpu().numpy()


def keep_calibration(folder: RunFolder, calibrated: Calibrated | None, seeds: range) -> None:
    """Write `calibration.json`, bound to the weights it was fitted on; none where there is no calibration."""
    if calibrated is None:
        folder.calibration.unlink(missing_ok=True)
        return
    document = {"format": FORMAT, **asdict(calibrated), "weights": _weights(folder, seeds)}
    document["sha256"] = digest(document)
    write_atomically(folder.calibration, json.dumps(document, indent=1).encode())


def read_calibration(folder: RunFolder, seeds: range) -> Calibrated | None:
    """The calibration of the run in a folder; None where it has none. One that was changed, or is stale, is refused."""
    path = folder.calibration
    if not path.exists():
        return None
    try:
        document = json.loads(read_file(path))
        if document["sha256"] != digest(document) or document["format"] != FORMAT:
            raise CheckpointError(f"{path} was changed: its checksum is wrong", hint=HINT)
        values = [document[name] for name in ("temperature", "shift", "fitted_on")]
        on_validation = bool(document.get("on_validation", True))  # a file that does not say: it may have been
        more = {name: document[name] for name in ("why_not", "share") if name in document}
        by_rows = {name: tuple(map(float, each)) for name, each in document.get("by_rows", {}).items()}
        found = Calibrated(*values, on_validation=on_validation, by_rows=by_rows, **more)
        weights = document["weights"]
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=HINT) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError) as error:
        raise CheckpointError(f"{path} is damaged", hint=HINT) from error
    if weights != _weights(folder, seeds):
        raise CheckpointError(f"{path} was fitted on other weights than those of the run", hint=HINT)
    return found


def _weights(folder: RunFolder, seeds: range) -> list[str | None]:
    """The checksums of all checkpoints."""
    return [checkpoint_digest(network.path) for network in folder.networks(seeds)]
