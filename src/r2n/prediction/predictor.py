"""Who decides: a trained network together with what it is told, which may change without any training."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float64

from r2n.errors import DataError
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.ground_rules import distinct_codes
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.growth import GivenFeatures, constant_ids
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.problem_file import Options
from r2n.knowledge.reciprocal import reciprocal_codes, with_reciprocals
from r2n.model.r2n import R2N, UNKNOWN
from r2n.prediction.answerable import supported
from r2n.prediction.answers import Answer, parse_question
from r2n.prediction.changed_problem import Given, Told
from r2n.prediction.new_features import with_features
from r2n.runs.run import Run, build_graph, load_run
from r2n.runs.scoring import AtomScores

NOTHING: Mapping[str, Iterable[str]] = {}
Marks = Bool[np.ndarray, " atoms"]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained network and what it is told; `with_facts` and `without_facts` give another, and train nothing.

    The facts are grounded again as the problem's own were, so the answers are those of the network on a problem with
    these facts from the start. They count as far as the network reads evidence (`evidence_input`), and as far as ground
    rules come and go with them. Atoms that the graph does not hold are grounded around when they are asked for.

    A constant that the training did not have has a vector only if it has features that the network reads. Else its
    atoms are answered where ground rules connect them with something known, and only by a network that learned to do
    without: one that reads evidence only, or one trained with hiding.
    """

    trained: R2N
    told: Told
    options: Options
    seed: int = 0
    grounded: FactorGraph | None = None

    @classmethod
    def of(cls, run: Run) -> "Predictor":
        """The network of a run, told what it was trained on."""
        return cls(run.model, Told.of(run.problem), run.options, run.seed, run.graph)

    @classmethod
    def load(cls, folder: Path | str) -> "Predictor":
        """The network of the run in a folder."""
        return cls.of(load_run(Path(folder)))

    def with_facts(
        self,
        facts: Given,
        *,
        domains: Mapping[str, Iterable[str]] = NOTHING,
        features: GivenFeatures | None = None,
    ) -> "Predictor":
        """Told more: facts as text (`!` before those that are false), files, tables, Evidence, or a list of these.

        A new constant belongs to the domains of the positions it stands at; where these are unions, `domains` says
        which part it is in: `{"country": ["atlantis"]}`. It is there as long as a fact names it, and one in `domains`
        until that is taken back. `features` are those of new constants, by domain: `{"paper": {"p7": "its title"}}`, or
        an array instead of a text.
        """
        return replace(self, told=self.told.with_facts(facts, domains, features), grounded=None)

    def without_facts(self, facts: Given, *, domains: Mapping[str, Iterable[str]] = NOTHING) -> "Predictor":
        """Told less: what these facts said is unknown again (or false, where the world is closed).

        `domains` takes back what was given as `domains` before.
        """
        return replace(self, told=self.told.without_facts(facts, domains), grounded=None)

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base that questions are about."""
        return self.told.base

    @cached_property
    def model(self) -> R2N:
        """The network, for the language as it is now; the weights are always the trained ones."""
        language = self.told.problem.knowledge.language
        if language is self.told.trained:
            return self.trained
        ids = torch.from_numpy(constant_ids(language, self.told.trained))
        if not self._knowledge.features or self.trained.evidence_input == "only":
            return self.trained.on_base(self._knowledge.base, ids)
        training = self._as_trained(self.told.training)
        return with_features(self.trained, training, self._knowledge, self.options.model)

    @cached_property
    def graph(self) -> FactorGraph:
        """The factor graph of what is told."""
        return self.grounded if self.grounded is not None else self._ground()

    @cached_property
    def scores(self) -> AtomScores:
        """The network's logits of atoms of the graph, whether they mean anything or not."""
        return self._scores(self.graph)

    def predict(self, question: str) -> list[Answer]:
        """The answers to `locatedIn(italy, ?)`, the most probable first; what cannot be answered is left out.

        Where nothing can be answered, that is an error that says why.
        """
        return self.answers(parse_question(self.base, question), leave_out=True)

    def answers(self, codes: Codes, *, leave_out: bool = False) -> list[Answer]:
        """The answers for atoms, the most probable first; what cannot be answered is refused, or left out."""
        logits, reached, refused = self._answered(codes)
        if refused.any() and not (leave_out and not refused.all()):
            self._refuse(codes[refused])
        evidence = self.told.problem.train
        known = dict(zip(evidence.atoms.tolist(), evidence.truth.tolist(), strict=True))
        names = self.base.names(codes)
        return [
            Answer(
                names[i],
                float(1 / (1 + np.exp(-logits[i]))),
                float(logits[i]),
                known.get(int(codes[i])),
                bool(reached[i]) or not self.model.layers,
            )
            for i in np.argsort(-logits, kind="stable")
            if not refused[i]
        ]

    def logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The logits of atoms, in their order; one that cannot be answered is refused."""
        logits, _, refused = self._answered(codes)
        if refused.any():
            self._refuse(codes[refused])
        return logits

    @cached_property
    def _knowledge(self) -> KnowledgeBase:
        """What is told, as the network was trained on it."""
        return self._as_trained(self.told.problem.knowledge)

    def _as_trained(self, knowledge: KnowledgeBase) -> KnowledgeBase:
        return with_reciprocals(knowledge) if self.options.model.reciprocal else knowledge

    def _ground(self, asked: Codes | None = None) -> FactorGraph:
        return build_graph(self.told.problem, self._knowledge, self.options, self.seed, asked)

    def _answered(self, codes: Codes) -> tuple[Float64[np.ndarray, " atoms"], Marks, Marks]:
        """Logits, whether a ground rule reaches each atom, and whether it has to be refused all the same.

        What is not in the graph is grounded around; what is in it is answered as if nothing else was asked.
        """
        codes = np.array(codes, np.int64)
        inside = self.graph.contains(torch.from_numpy(codes)).numpy()
        logits, reached, refused = np.zeros(len(codes)), np.zeros(len(codes), bool), np.zeros(len(codes), bool)
        for which in (inside, ~inside):
            if which.any():
                scores = self.scores if which is inside else self._scores(self._ground(codes[which]))
                logits[which] = scores(codes[which])
                reached[which] = _in_rules(scores.graph, codes[which])
                refused[which] = self._is_refused(scores, codes[which])
        return logits, reached, refused

    def _scores(self, graph: FactorGraph) -> AtomScores:
        return AtomScores.of(self.model, graph, self._knowledge.evidence)

    def _is_refused(self, scores: AtomScores, codes: Codes) -> Marks:
        """Whether each atom has a constant without a vector, and no rule tells the network anything about it."""
        graph, blank = scores.graph, self.model.prepare(scores.graph).blank
        if blank is None:
            return np.zeros(len(codes), bool)
        refused = blank
        if self._does_without_vectors:
            is_known = scores.known != UNKNOWN
            closed = torch.from_numpy(closed_atoms(self.model.base, graph.atoms.numpy()))
            is_told = is_known if self.model.evidence_input != "off" else torch.zeros_like(blank)
            sources = ~closed & (~blank | is_told)
            refused = blank & ~supported(graph, sources, is_known, len(self.model.layers))
        mirrored = reciprocal_codes(self.model.base, codes)
        both = np.stack([codes, np.where(mirrored >= 0, mirrored, codes)])
        return np.any(refused[graph.rows(torch.from_numpy(both.ravel()))].numpy().reshape(both.shape), axis=0)

    @property
    def _does_without_vectors(self) -> bool:
        """Whether the network has learned to answer for atoms without an embedding of their own."""
        if not self.model.layers:
            return False
        return self.model.evidence_input == "only" or self.options.training.hiding > 0

    def _refuse(self, codes: Codes) -> None:
        """Say why the first of these atoms has no answer."""
        atom, constant = self.base.names(codes[:1])[0], self._new_constant(int(codes[0]))
        more = f", nor can {len(codes) - 1:,} other atoms" if len(codes) > 1 else ""
        if not self.model.layers:
            why, hint = "the network has no reasoning layer", "train one with model.layers of 1 or more"
        elif not self._does_without_vectors:
            why = "the network was trained without hiding, so it never learned to do without a vector"
            hint = "train one with training.hiding above 0, or with model.evidence_input = only"
        else:
            why = "no ground rule connects the atom with anything that is known"
            hint = f"tell facts about '{constant}' that lead through the rules to what the training knew"
        raise DataError(
            f"{atom} cannot be answered{more}: '{constant}' is no constant of the training, and {why}", hint=hint
        )

    def _new_constant(self, code: int) -> str:
        assert self.model.trained_ids is not None
        arguments = self.base.decode(np.array([code]))[1][0]
        ids = self.model.trained_ids.numpy()
        return next(self.base.language.constants[c] for c in arguments if c >= 0 and ids[c] < 0)


def _in_rules(graph: FactorGraph, codes: Codes) -> Marks:
    """Whether each atom stands in a ground rule."""
    return np.isin(codes, graph.atoms.numpy()[distinct_codes([part.numpy() for part in graph.neighbours])])
