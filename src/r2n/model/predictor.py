"""A trained network with what is known to it, which may change without any training."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float64
from scipy.special import expit
from torch import nn

from r2n.data.atom_text import parse_atom
from r2n.data.features import constant_labels
from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, GivenFeatures, KnowledgeBase, constant_ids, reciprocal_codes
from r2n.errors import ConfigError, DataError, counted
from r2n.evaluation.calibrate import Calibrated
from r2n.explanation.explain import Wanted, explain
from r2n.explanation.neighbourhood import Otherwise, Subject
from r2n.explanation.records import Belief, Explanation
from r2n.explanation.text import all_reasons
from r2n.model.answers import AnswerColumns, Answers, Question, argument_names, no_answer, supported
from r2n.model.changes import ChangedProblem, Given, with_features
from r2n.model.memory import as_trained, make_source
from r2n.model.run import Ensemble, Run
from r2n.model.trained import Trained
from r2n.network.factor_graph import UNKNOWN, known_truths
from r2n.network.graph_sources import GraphSource, without_rules
from r2n.network.r2n import R2N
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits, LogitsOfEach, Pass


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, and which of its answers are told: the `top` ones, only what is `unknown`, or `everything`."""

    question: Question
    everything: bool = False
    top: int | None = None
    unknown: bool = False


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of the atoms of a predicate that answer a question, ranked, and how many others there are."""

    predicate: str
    columns: AnswerColumns
    asked: int
    refused: int
    left_out: int
    hidden: int

    def answers(self, predictor: "Predictor") -> Answers:
        """As answers in words."""
        items, names = self.columns.items(predictor.base), predictor.argument_names([self.predicate])
        counts = (self.asked, self.refused, self.left_out, self.hidden)
        return Answers(items, *counts, predictor.calibration, names, self.columns.spread is not None)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The atoms that a question is answered by; `is_sifted`: of these, what nothing is known of is left out."""

    codes: Codes
    is_sifted: bool = False


def ask_together(predictor: "Predictor", asked: Sequence[Asked]) -> list[Told | DataError]:
    """What is told to each of some questions, in one pass; or why one of them has no answer."""
    wanted = [_wanted(predictor, one) for one in asked]
    there = [part.codes for part in wanted if isinstance(part, _Wanted)]
    if not there:
        return [part for part in wanted if isinstance(part, DataError)]
    union = there[0] if len(there) == 1 else np.unique(np.concatenate(there))
    columns = predictor.columns(union)
    return [
        part if isinstance(part, DataError) else _told(predictor, one, part, columns)
        for one, part in zip(asked, wanted, strict=True)
    ]


def _wanted(predictor: "Predictor", asked: Asked) -> _Wanted | DataError:
    try:
        return _atoms(predictor, asked.question, everything=asked.everything)
    except DataError as error:
        return error


def _atoms(predictor: "Predictor", question: Question, *, everything: bool) -> _Wanted:
    """The atoms that a question is answered by: with `?`, those that are known or that ground rules reach."""
    if everything or len(question) == 1 or not predictor.model.layers:
        return _Wanted(question.codes())
    told_of = predictor.told_of
    if told_of is None:
        return _Wanted(question.codes(), is_sifted=True)
    wanted = told_of[question.asks_for(told_of)]
    if not len(wanted) and predictor.model.trained_ids is not None:
        predictor.logits(question.codes())  # where it is a new constant that stands in the way, that is said
    return _Wanted(wanted)


def _told(predictor: "Predictor", asked: Asked, wanted: _Wanted, columns: AnswerColumns) -> Told | DataError:
    """What is told to one question, of the columns of all."""
    is_all = len(columns.atoms) == len(wanted.codes)
    own = columns if is_all else columns.kept(np.searchsorted(columns.atoms, wanted.codes))
    if own.refused.any() and own.refused.all():
        return predictor.no_answer(wanted.codes)
    if wanted.is_sifted:
        own = own.kept(own.reached | own.is_stated)
    told = own.unknown() if asked.unknown else own
    number = len(own.atoms)
    left_out = len(asked.question) - number
    refused, hidden = int(own.refused.sum()), number - len(told.atoms)
    return Told(asked.question.predicate.name, told.ranked(asked.top), number, refused, left_out, hidden)


def explained(predictor: "Predictor", atom: str, *, depth: int, top: int | None, against: str | None) -> Explanation:
    """Why an atom is answered as it is; what cannot be answered is refused as a question is."""
    if depth < 0 or (top is not None and top < 1):
        raise ConfigError(
            f"depth is 0 or more, and top is 1 or more, not {depth} and {top}", hint="depth = 0 tells the answer alone"
        )
    code, other = _one(predictor, atom), None if against is None else _one(predictor, against)
    if code == other:
        raise ConfigError(f"{atom} is compared to itself", hint="give another atom as `against`")
    asked = np.array([code] if other is None else [code, other], np.int64)
    predictor.logits(asked)  # refuses what has no answer
    found = explain(subject_of(predictor), code, Wanted(depth, top, other))
    return replace(found, labels=_labels(predictor, found))


def _labels(predictor: "Predictor", found: Explanation) -> tuple[tuple[str, str], ...]:
    """What people call the constants of an explanation, in the order in which they stand in it."""
    contrast = () if found.contrast is None else found.contrast.reasons
    reasons = list(all_reasons((*found.reasons, *contrast)))
    atoms = [found.atom, *(member.atom for reason in reasons for member in reason.because)]
    atoms += [] if found.contrast is None else [found.contrast.other]
    parsed = [atom for atom in map(parse_atom, dict.fromkeys(atoms)) if atom is not None]
    names = dict.fromkeys(term for atom in parsed for term in atom.terms if term is not None)
    knowledge = predictor.changed.problem.knowledge
    return tuple(constant_labels(knowledge.features, knowledge.language, names, with_texts=True).items())


def _one(predictor: "Predictor", text: str) -> int:
    asked = Question.parse(predictor.base, text)
    if len(asked) != 1:
        raise DataError(
            f"'{text}' asks for {len(asked):,} atoms, and one is explained at a time",
            hint=f'ask first: r2n predict RUN "{text}", then explain one of the answers',
        )
    return int(asked.codes()[0])


def subject_of(predictor: "Predictor") -> Subject:
    """What explanations ask of a predictor."""
    calibration = predictor.calibration
    calibrated = None if calibration is None else calibration.in_words

    def beliefs(codes: Codes) -> list[Belief]:
        said = predictor.columns(subject.plain(codes))
        known = [bool(truth) if stated else None for truth, stated in zip(said.truths, said.is_stated, strict=True)]
        spread = [None] * len(known) if said.spread is None else said.spread.tolist()
        columns = said.probability.tolist(), said.logits.tolist(), known, said.closed.tolist(), spread
        return [Belief(*parts, calibrated=calibrated) for parts in zip(*columns, strict=True)]

    def otherwise(what: Otherwise) -> tuple[AtomLogits, ...]:
        if what.without_rule is not None:
            return tuple(member.without_rules([what.without_rule]) for member in predictor.members)
        changed = _without(predictor, subject.plain(what.unknown))
        if len(what.false):
            changed = changed.with_facts(Evidence(np.sort(what.false), np.zeros(len(what.false), bool)))
        return changed.members

    half = 0.0 if calibration is None else calibration.shift
    subject = Subject(predictor.members, predictor.knowledge, beliefs, calibration or expit, otherwise, half)
    return subject


def _without(predictor: "Predictor", codes: Codes) -> "Predictor":
    """Facts taken back, however often they were told; a new constant that they alone name is declared, and stays."""
    language = predictor.base.language
    new = {language.constant_id(name) for name in predictor.changed.new_constants}
    parts = [domain for domain in language.domains if not domain.parts]
    declared = {d.name: [language.constants[i] for i in language.members(d).tolist() if i in new] for d in parts}
    if new:
        predictor = predictor.with_facts([], domains={name: held for name, held in declared.items() if held})
    evidence = predictor.changed.problem.train
    codes = np.unique(codes)
    while len(codes):
        truth = evidence.truth[np.searchsorted(evidence.atoms, codes)]
        predictor = predictor.without_facts(Evidence(codes, truth))
        evidence = predictor.changed.problem.train
        codes = codes[np.isin(codes, evidence.atoms)]
    return predictor


NOTHING: Mapping[str, Iterable[str]] = {}
Marks = Bool[np.ndarray, " atoms"]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained network and what it knows; `with_facts` and `without_facts` give another, and train nothing.

    The facts are grounded again as the problem's own were, so the answers are those of the network on a problem with
    these facts from the start. They count as far as the network reads evidence (`evidence_input`), and as far as ground
    rules come and go with them.

    A constant that the training did not have has a vector only if it has features that the network reads. Else its
    atoms are answered where ground rules connect them with something known, and only by a network that learned to do
    without: one that reads evidence only, or one trained with hiding.
    """

    trained: Trained
    changed: ChangedProblem
    progress: Progress = no_progress
    rules_off: frozenset[str] = frozenset()

    @classmethod
    def of(cls, trained: Trained | Run | Ensemble, progress: Progress = no_progress) -> "Predictor":
        """A network that knows what it was trained on: one that was loaded, or that of a run."""
        trained = trained if isinstance(trained, Trained) else Trained.of(trained)
        return cls(trained, ChangedProblem.of(trained.problem), progress)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        encoders: Mapping[str, nn.Module] | None = None,
        device: str = "auto",
        progress: Progress = no_progress,
    ) -> "Predictor":
        """The network of the run in a folder."""
        return cls.of(Trained.load(folder, encoders=encoders, device=device, progress=progress), progress)

    def with_facts(
        self,
        facts: Given,
        *,
        domains: Mapping[str, Iterable[str]] = NOTHING,
        features: GivenFeatures | None = None,
    ) -> "Predictor":
        """Knowing more: facts as text (`!` before those that are false), files, tables, Evidence, or a list of these.

        A new constant belongs to the domains of the positions it stands at; where these are unions, `domains` says
        which part it is in: `{"country": ["atlantis"]}`. It is there as long as a fact names it, and one in `domains`
        until that is taken back. `features` are those of new constants, by domain: `{"paper": {"p7": "its title"}}`, or
        an array instead of a text.
        """
        return replace(self, changed=self.changed.with_facts(facts, domains, features))

    def without_facts(self, facts: Given, *, domains: Mapping[str, Iterable[str]] = NOTHING) -> "Predictor":
        """Knowing less: what these facts said is unknown again (or false, where the world is closed).

        `domains` takes back what was given as `domains` before.
        """
        return replace(self, changed=self.changed.without_facts(facts, domains))

    def without_rules(self, names: Collection[str]) -> "Predictor":
        """Where nothing is grounded or counted by the rules of these names; those left out before stay so."""
        without_rules(self.source, names)  # refuses a name that is none
        return replace(self, rules_off=self.rules_off | frozenset(names))

    def __repr__(self) -> str:
        """Of which problem, and how much is known."""
        problem = self.changed.problem
        return f"Predictor('{problem.name}', {counted(len(problem.train), 'known atom')})"

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base that questions are about."""
        return self.changed.base

    @cached_property
    def model(self) -> R2N:
        """The network, for the language as it is now; the weights are always the trained ones."""
        return self._now(self.trained.model)

    def _now(self, trained: R2N) -> R2N:
        language = self.changed.problem.knowledge.language
        if language is self.changed.trained:
            return trained
        if not self.knowledge.features or trained.evidence_input == "only":
            ids = torch.from_numpy(constant_ids(language, self.changed.trained))
            return trained.on_base(self.knowledge.base, ids)
        return with_features(trained, self.trained.knowledge, self.knowledge, self.trained.options.model)

    @cached_property
    def source(self) -> GraphSource:
        """Where graphs come from, for the facts as they are now."""
        is_trained = self.changed.problem is self.trained.problem
        make = partial(make_source, self.knowledge, self.trained.options, self.progress)
        return without_rules(self.trained.source if is_trained else make(), self.rules_off)

    @cached_property
    def atom_logits(self) -> AtomLogits:
        """The network's logits of any atoms, whether they mean anything or not; of an ensemble, the means."""
        if self.changed.problem is self.trained.problem and not self.rules_off:
            return self.trained.logits
        others = tuple(map(self._now, self.trained.others))
        return AtomLogits(self.model, self.source, self.knowledge.evidence, others=others)

    @property
    def members(self) -> tuple[AtomLogits, ...]:
        """The logits of each network alone; of one at least."""
        return self.atom_logits.members

    @property
    def calibration(self) -> Calibrated | None:
        """How logits become probabilities, fitted on what the training knew."""
        return self.trained.calibration

    def predict(
        self, question: str, *, everything: bool = False, top: int | None = None, unknown: bool = False
    ) -> Answers:
        """The answers to `locatedIn(italy, ?)`, the most probable first, at most `top`.

        A question with `?` is answered by the atoms that are known or that ground rules reach, or (`everything`) by
        all; with `unknown`, those that are known or closed are not told. What cannot be answered is left out; where
        nothing can, that is an error that says why.
        """
        asked = Asked(Question.parse(self.base, question), everything, top, unknown)
        return self._told(asked).answers(self)

    def explain(self, atom: str, *, depth: int = 2, top: int | None = 5, against: str | None = None) -> Explanation:
        """Why an atom is answered as it is: the `top` ground rules that moved it (None: all), and what would turn it.

        `depth`: so many levels of ground rules, down to what is known; 0 tells the answer alone. With `against`,
        another atom, the ground rules that make the difference stand beside.
        """
        return explained(self, atom, depth=depth, top=top, against=against)

    def told(
        self, asked: Question, *, everything: bool = False, top: int | None = None, unknown: bool = False
    ) -> AnswerColumns:
        """The same as columns, for a question that is an object already."""
        return self._told(Asked(asked, everything, top, unknown)).columns

    def _told(self, asked: Asked) -> Told:
        told = ask_together(self, [asked])[0]
        if isinstance(told, DataError):
            raise told
        return told

    @property
    def known_atoms(self) -> Codes:
        """The atoms that are stated."""
        return self.changed.problem.train.atoms

    @cached_property
    def told_of(self) -> Codes | None:
        """The atoms that are known or that ground rules reach, ascending; None where rules depend on what is asked."""
        whole = self.atom_logits.whole
        if whole is None:
            return None
        reached = whole.graph.atoms[whole.graph.in_rules].cpu().numpy()
        return np.unique(np.concatenate([reached, self.concluded, self.known_atoms]))

    def answers(self, codes: Codes, *, top: int | None = None) -> Answers:
        """The answers for atoms, the most probable first; one that cannot be answered is refused."""
        columns = self.columns(codes)
        if columns.refused.any():
            raise self.no_answer(columns.atoms[columns.refused])
        items = columns.ranked(top).items(self.base)
        names = self.argument_names({item.predicate for item in items})
        is_ensemble = columns.spread is not None
        return Answers(items, len(columns.atoms), 0, 0, 0, self.calibration, names, is_ensemble)

    def argument_names(self, predicates: Iterable[str]) -> tuple[str, ...]:
        """The names of the columns for the arguments, in a table of answers of these predicates."""
        return argument_names(self.base.language, self.trained.problem.columns, predicates)

    def columns(self, codes: Codes) -> AnswerColumns:
        """What is said of atoms, in their order; those that cannot be answered are marked as refused."""
        codes = np.array(codes, np.int64)
        each, reached, refused = self._answered(codes)
        truths = known_truths(self.base, codes, self.changed.problem.train)
        reached = reached if self.model.layers else np.ones(len(codes), bool)
        logits, spread = each.mean(axis=0), each.std(axis=0, ddof=1) if len(each) > 1 else None
        network = (self.calibration or expit)(logits)
        return AnswerColumns(codes, truths, np.isin(codes, self.known_atoms), logits, reached, refused, network, spread)

    def logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The network's logits of atoms, in their order; one that cannot be answered is refused."""
        codes = np.array(codes, np.int64)
        each, _, refused = self._answered(codes)
        if refused.any():
            raise self.no_answer(codes[refused])
        return each.mean(axis=0)

    @cached_property
    def knowledge(self) -> KnowledgeBase:
        """What is known, in the language of the network."""
        if self.changed.problem is self.trained.problem:
            return self.trained.knowledge
        return as_trained(self.changed.problem.knowledge, self.trained.options.grounding)

    def _answered(self, codes: Codes) -> tuple[LogitsOfEach, Marks, Marks]:
        """Logits, whether a ground rule reaches each atom, and whether it has to be refused all the same."""
        mirrored = reciprocal_codes(self.model.base, codes)
        both = codes[None] if (mirrored < 0).all() else np.stack([codes, np.where(mirrored >= 0, mirrored, codes)])
        networks = len(self.atom_logits.models)
        logits, reached, refused = np.zeros((networks, both.size)), np.zeros(both.size, bool), np.zeros(both.size, bool)
        for which, made in self.atom_logits.passes(both.ravel()):
            rows = made.rows(both.ravel()[which])
            logits[:, which] = made.each[:, rows]
            reached[which] = made.graph.in_rules.numpy()[rows]
            refused[which] = (self._refused_of_whole if made is self.atom_logits.whole else self._refused(made))[rows]
        shape = both.shape
        is_plain = self.model.counted is None
        each = logits.reshape(networks, *shape).mean(axis=1) if is_plain else self.atom_logits.each(codes)
        reached = reached.reshape(shape)[0] | np.isin(codes, self.concluded)
        return each, reached, np.any(refused.reshape(shape), axis=0)

    @property
    def concluded(self) -> Codes:
        """The atoms that counted rules conclude from what is known."""
        counts = self.source.counts
        return np.zeros(0, np.int64) if counts is None else counts.codes

    @cached_property
    def _refused_of_whole(self) -> Marks:
        assert self.atom_logits.whole is not None
        return self._refused(self.atom_logits.whole)

    def _refused(self, made: Pass) -> Marks:
        """Whether each atom of a graph has a constant without a vector, and no rule tells anything of it."""
        blank = made.layout.blank
        if blank is None:
            return np.zeros(len(made.logits), bool)
        blank = blank.cpu()
        if not self._does_without_vectors:
            return blank.numpy()
        is_known = made.known != UNKNOWN
        closed = torch.from_numpy(closed_atoms(self.model.base, made.graph.atoms.cpu().numpy()))
        is_read = is_known if self.model.evidence_input != "off" else torch.zeros_like(blank)
        sources = ~closed & (~blank | is_read)
        return (blank & ~supported(made.graph, sources, is_known, len(self.model.layers))).numpy()

    @property
    def _does_without_vectors(self) -> bool:
        """Whether the network has learned to answer for atoms without an embedding of their own."""
        if not self.model.layers:
            return False
        return self.model.evidence_input == "only" or self.trained.options.training.hiding > 0

    def no_answer(self, codes: Codes) -> DataError:
        """Why the first of these atoms has no answer."""
        return no_answer(self.model, self.base, codes, does_without_vectors=self._does_without_vectors)


@dataclass(frozen=True, slots=True)
class Named:
    """How those who give changes call them: as options of a command, or as fields of a request."""

    more: str = "with"
    fewer: str = "without"
    constants: str = "constants"


def told_otherwise(
    predictor: "Predictor",
    more: Sequence[str],
    fewer: Sequence[str],
    constants: Mapping[str, Sequence[str]],
    named: Named,
) -> "Predictor":
    """Knowing less, and then more; `constants` are new ones, by domain."""
    if fewer:
        with _naming(named.fewer):
            predictor = predictor.without_facts(list(fewer))
    if more or constants:
        with _naming(named.more if more else named.constants):
            predictor = predictor.with_facts(list(more), domains=constants)
    return predictor


@contextmanager
def _naming(given: str) -> Iterator[None]:
    """Errors of what was given say which part of it that was."""
    try:
        yield
    except DataError as error:
        where, what = error.where, error.what
        if where is not None and where.source is not None:
            where = replace(where, source=f"{given} {where.source}")
        else:
            where, what = where and replace(where, line=None), f"{given}: {what}"
        raise DataError(what, where=where, hint=error.hint) from None
