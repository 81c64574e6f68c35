"""A trained network, asked: together with what is known to it, which may change without any training."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float64
from scipy.special import expit
from torch import nn

from r2n.errors import DataError, counted
from r2n.evaluation.calibrate import Calibrated
from r2n.explanation.records import Explanation
from r2n.graph.known_states import UNKNOWN, known_truths
from r2n.graph.left_out import without_rules
from r2n.graph.sources import GraphSource
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.growth import GivenFeatures, constant_ids
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.model.atom_logits import AtomLogits
from r2n.model.passes import LogitsOfEach, Pass
from r2n.model.r2n import R2N
from r2n.prediction.answerable import no_answer, supported
from r2n.prediction.answers import AnswerColumns, Answers, Question
from r2n.prediction.asking import Asked, Told, ask_together
from r2n.prediction.changed_problem import ChangedProblem, Given
from r2n.prediction.explained import explained
from r2n.prediction.new_features import with_features
from r2n.prediction.shown_answers import argument_names
from r2n.prediction.trained import Trained
from r2n.progress import Progress, no_progress
from r2n.runs.config import as_trained, make_source
from r2n.runs.ensemble import Ensemble
from r2n.runs.run import Run

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
