"""The model as a user holds it: networks with a problem, options and calibration; it evaluates, predicts, explains."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import copytree

import numpy as np
import torch
from jaxtyping import Bool, Float64
from scipy.special import expit, logsumexp
from torch import Tensor, nn

from r2n.data.atom_text import parse_atom
from r2n.data.features import constant_labels
from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, are_among, closed_atoms
from r2n.data.knowledge_base import Evidence, GivenFeatures, KnowledgeBase, as_trained, constant_ids, reciprocal_codes
from r2n.data.problem import Problem
from r2n.errors import CheckpointError, ConfigError, DataError, R2NError, counted, refusing
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.ranking import (
    DEFAULT_OPTIONS,
    EvaluationOptions,
    probabilities,
    row_features,
    row_memory,
    row_scores,
)
from r2n.evaluation.report import NOT_COMPARED, Report, Score
from r2n.explanation.counterfactuals import ExplainedModel, WhatIf
from r2n.explanation.explain import explain
from r2n.explanation.paths import explain_along_paths
from r2n.explanation.records import Belief, Explanation, all_reasons
from r2n.files import new_folder
from r2n.mining.mine import Constrained
from r2n.model.answers import Answer, Answers, Question, argument_names
from r2n.model.calibration import read_calibration
from r2n.model.changes import ChangedProblem, Given, with_features
from r2n.model.memory import make_device, make_source
from r2n.model.run import WITHOUT_REASONING, Run, baseline_scores, evaluate_split
from r2n.network.factor_graph import UNKNOWN, FactorGraph, known_truths
from r2n.network.graph_sources import GraphSource, without_rules
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits, LogitsOfEach, Pass
from r2n.store.checkpoint import trained_weights
from r2n.store.folder import RunFolder, read_config, read_problem

NOTHING: Mapping[str, Iterable[str]] = {}
Marks = Bool[np.ndarray, " atoms"]


@dataclass(frozen=True, eq=False)
class Model:
    """One or more trained networks and what they know; `r2n.train` makes one, `Model.load` reads one from a folder.

    `with_facts` and `without_facts` give another model and train nothing: the rules are grounded again. A constant that
    the training did not have has a vector only if it has features that the networks read. Otherwise its atoms are
    answered if ground rules connect them with something known, and the networks read evidence only or were trained
    with `training.hiding`. `trained_networks`, `trained_knowledge` and `trained_source` are those of the training;
    `network`, `knowledge`, `source` and `problem` those of the facts as they are now.
    """

    changed: ChangedProblem
    options: Options
    trained_networks: tuple[R2N, ...]
    trained_knowledge: KnowledgeBase
    trained_source: GraphSource
    calibration: Calibrated | None = None
    folder: Path | None = None
    memory: int | None = None
    progress: Progress = no_progress
    rules_off: frozenset[str] = frozenset()
    chosen: Mapping[str, str] | None = None  # options that r2n chose, and why; None if the training was resumed
    temporary: object = None  # keeps the temporary folder of a training for as long as the model is there

    @classmethod
    def from_run(cls, run: Run, calibration: Calibrated | None = None, folder: Path | None = None) -> "Model":
        """What a run has trained, and kept in a folder."""
        networks = tuple(run.logits().models)
        changed = ChangedProblem.from_problem(run.problem)
        return cls(changed, run.options, networks, run.knowledge, run.source, calibration, folder, run.memory)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        encoders: Mapping[str, nn.Module] | None = None,
        device: str = "auto",
        memory: int | None = None,
        progress: Progress = no_progress,
    ) -> "Model":
        """The model in a folder, on any device; `encoders` are the caller's modules, if the training had some.

        `memory`: the bytes that grounding and evaluation may take.
        """
        folder, given, networks = Path(folder), encoders or {}, list[R2N]()
        progress("read", 0, 0)
        config = read_config(run := RunFolder(folder))
        if sorted(given) != sorted(config.encoders):
            missing = [name for name in config.encoders if name not in given]
            listed = ", ".join(f"'{name}': module" for name in config.encoders)
            hint = f"give them again: load(folder, encoders={{{listed}}})" if listed else "load it without encoders"
            why = f"no encoder is given for '{missing[0]}'" if missing else "encoders are given for other domains"
            what = (
                f"the run in {folder} was trained with encoders of its own for {list(config.encoders) or 'no domain'}"
            )
            raise ConfigError(f"{what}; {why}", hint=hint)
        paths = [part.path for part in run.networks(config.seeds)]
        weights = [trained_weights(path, config.digest) for path in paths]
        calibration = read_calibration(run, config.seeds)
        problem = read_problem(run, config)
        knowledge = as_trained(problem.knowledge, config.options.grounding)
        for path, part in zip(paths, weights, strict=True):
            own = deepcopy(dict(given)) if networks else given
            with torch.random.fork_rng(devices=[]):
                network = R2N.build(knowledge, config.options.model, encoders=own)
            try:
                network.load_state_dict(part)
            except RuntimeError as error:
                message = str(error).splitlines()[0]
                raise CheckpointError(f"the checkpoint in {path} does not fit its network: {message}") from error
            networks.append(network.eval().to(make_device(device)))
        source = make_source(knowledge, config.options, progress, memory=memory)
        changed = ChangedProblem.from_problem(problem)
        return cls(changed, config.options, tuple(networks), knowledge, source, calibration, folder, memory, progress)

    def save(self, folder: Path | str) -> None:
        """Write the model as a folder: that of `r2n train --out`, which `Model.load` and every command read."""
        if self.folder is None or self._is_changed or self.rules_off:
            hint = "save the model that `r2n.train` returned, and change the facts of the loaded one"
            raise ConfigError("this model has no folder of its own, or its facts or rules were changed", hint=hint)
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty", hint="give another folder")
        with refusing(f"the folder {str(folder)!r} cannot be made", "give another folder"):
            folder.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(folder) as work:
            copytree(self.folder, work, dirs_exist_ok=True)

    def __repr__(self) -> str:
        made, layers = self.options.model, counted(self.trained_networks[0].depth, "reasoning layer")
        networks = f", ensemble of {len(self.trained_networks)}" if len(self.trained_networks) > 1 else ""
        known = counted(len(self.problem.train), "known atom")
        kind = made.input if self.network.paths is None else "paths"
        return f"Model('{self.problem.name}', {kind} of dim {made.dim}, {layers}{networks}, {known})"

    @property
    def problem(self) -> Problem:
        """The problem, with the facts as they are now."""
        return self.changed.problem

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base that questions are about."""
        return self.problem.knowledge.base

    @property
    def _is_changed(self) -> bool:
        return self.problem.knowledge is not self.changed.training

    @cached_property
    def knowledge(self) -> KnowledgeBase:
        """What is known now, in the language of the networks."""
        if not self._is_changed:
            return self.trained_knowledge
        return as_trained(self.problem.knowledge, self.options.grounding)

    @cached_property
    def networks(self) -> tuple[R2N, ...]:
        """The networks, for the language as it is now; the weights are always the trained ones."""
        language = self.problem.knowledge.language
        reads_facts = self._is_changed and self.trained_networks[0].atom_embedding.reads_facts
        if language is self.changed.trained and not reads_facts:
            return self.trained_networks
        if not (self.knowledge.features or reads_facts) or self.trained_networks[0].evidence_input == "only":
            ids = torch.from_numpy(constant_ids(language, self.changed.trained))
            return tuple(network.on_base(self.knowledge.base, ids) for network in self.trained_networks)
        made = self.options.model
        return tuple(with_features(n, self.trained_knowledge, self.knowledge, made) for n in self.trained_networks)

    @property
    def network(self) -> R2N:
        """The (first) network, a `torch.nn.Module`."""
        return self.networks[0]

    @cached_property
    def source(self) -> GraphSource:
        """Where graphs come from, for the facts as they are now."""
        make = self.trained_source
        if self._is_changed:
            make = make_source(self.knowledge, self.options, self.progress, memory=self.memory)
        return without_rules(make, self.rules_off)

    @cached_property
    def scores(self) -> AtomLogits:
        """The networks' logits of any atoms, whether they mean anything or not; of an ensemble, the means."""
        return AtomLogits(self.network, self.source, self.knowledge.evidence, others=self.networks[1:])

    @property
    def members(self) -> tuple[AtomLogits, ...]:
        """The logits of each network alone."""
        return self.scores.members

    @cached_property
    def baselines(self) -> dict[str, Score]:
        """What the results are compared with: parts of the network, and the same input layer trained without rules."""
        found, without = baseline_scores(self.scores, self.problem), self._without_reasoning
        return found | ({WITHOUT_REASONING: without} if isinstance(without, AtomLogits) else {})

    @cached_property
    def _without_reasoning(self) -> AtomLogits | str | None:
        """The logits of the same input layer trained without rules; None if none was trained, or why it is lost."""
        if self.folder is None:
            return None
        kept = RunFolder(self.folder).without_reasoning
        try:
            if not kept.config.exists():
                return None
            return Model.load(kept.path, device=str(self.network.device), memory=self.memory).scores
        except (R2NError, OSError) as error:  # the run itself is sound
            why = error.what if isinstance(error, R2NError) else str(error)
            again = f"delete {kept.path}, and r2n train P --out {self.folder} --resume trains it again"
            return f"with '{WITHOUT_REASONING}': {why}; {again}"

    def evaluate(
        self,
        split: str = "test",
        progress: Progress | None = None,
        *,
        options: EvaluationOptions = DEFAULT_OPTIONS,
        baselines: bool = False,
    ) -> Report:
        """The report on a split: ranking if all its queries are true, else classification.

        With `baselines`, it also has the metrics of the rules alone, of the input layer alone and of the same input
        layer trained without rules, if they are cheap. Calibration and memory are those of the model.
        """
        options = replace(options, calibration=self.calibration, memory=row_memory(self.memory))
        compared, said = self.baselines if baselines else None, progress or self.progress
        _ = self.source.counts  # of all rows at once: one by one would take longer
        report = evaluate_split(
            self.scores, self.problem, split, said, options=options, baselines=compared, training=self.options
        )
        notes = {"constraints": str(options.forbidden)} if isinstance(options.forbidden, Constrained) else {}
        if baselines and isinstance(self._without_reasoning, str):
            notes[NOT_COMPARED] = self._without_reasoning
        return replace(report, protocol={**report.protocol, **notes})

    def predict(
        self, question: str, *, everything: bool = False, top: int | None = None, unknown: bool = False
    ) -> Answers:
        """The answers to `locatedIn(italy, ?)`, the most probable first, at most `top`.

        A question with `?` is answered by the atoms that are known or that ground rules reach, or (`everything`) by
        all; `unknown` hides known and closed atoms. If no atom can be answered, an error says why.
        """
        asked = Question.parse(self.base, question)
        return self.answer(replace(asked, everything=everything, top=top, unknown=unknown))

    def answer(self, question: Question) -> Answers:
        """As `predict`, for a `Question`."""
        (found,) = self.answer_all([question])
        if isinstance(found, DataError):
            raise found
        return found

    def answer_all(self, questions: Sequence[Question]) -> list[Answers | DataError]:
        """The answers to each of several questions, in one pass; or why one of them has none."""
        atoms = [self._atoms_to_answer(question) for question in questions]
        codes = [part for part in atoms if not isinstance(part, DataError)]
        if not codes:
            return [part for part in atoms if isinstance(part, DataError)]
        union = codes[0] if len(codes) == 1 else np.unique(np.concatenate(codes))
        along_paths = self.network.paths is not None
        every, found = self._columns(union[:0] if along_paths else union), list[Answers | DataError]()
        is_filtered = bool(self.network.depth) and self.reachable_atoms is None
        for question, part in zip(questions, atoms, strict=True):
            if isinstance(part, DataError):
                found.append(part)
                continue
            if along_paths:
                own = self._columns(part, question.open_position)
            else:
                own = every if len(part) == len(union) else every.kept(np.searchsorted(union, part))
            if own.is_refused.any() and own.is_refused.all():
                found.append(self.no_answer(part))
                continue
            if is_filtered and not question.everything and len(question) > 1:
                own = own.kept(own.reached | own.is_asserted)
            shown = own.kept(own.truths < 0) if question.unknown else own
            columns, refused = self.argument_names([question.predicate.name]), int(own.is_refused.sum())
            counts = {"left_out": len(question) - len(own), "hidden": len(own) - len(shown)}
            ranked = self._with_share(self._believed(shown.ranked(question.top)), question)
            found.append(replace(ranked, columns=columns, asked=len(own), refused=refused, **counts))
        return found

    def _atoms_to_answer(self, question: Question) -> Codes | DataError:
        """The atoms that a question is answered by: with `?`, those that are known or that ground rules reach."""
        try:
            is_full = question.everything or len(question) == 1 or not self.network.depth
            wanted = None if is_full else self._reachable(question)
            if wanted is None:
                return question.codes()
            if not len(wanted) and self.network.trained_ids is not None:
                self.logits(question.codes())  # if a new constant is the reason, this says so
            return wanted
        except DataError as error:
            return error

    def _reachable(self, question: Question) -> Codes | None:
        """Those of the atoms that a question asks for which are known or which ground rules reach."""
        full, counts = self.scores.full_pass, self.source.row_counts
        places = [position for position, column in enumerate(question.columns) if len(column) > 1]
        if full is None or counts is None or len(places) > 1:
            found = self.reachable_atoms
            return None if found is None else found[question.asks_for(found)]
        codes = question.codes()  # of one row: only that is counted
        in_rules = full.graph.atoms[full.graph.in_rules].cpu().numpy()
        return codes[np.isin(codes, in_rules) | np.isin(codes, self.known_atoms) | counts.conclude(codes, *places)]

    @property
    def known_atoms(self) -> Codes:
        """The atoms that are asserted."""
        return self.problem.train.atoms

    @cached_property
    def reachable_atoms(self) -> Codes | None:
        """The atoms that are known or that ground rules reach, ascending; None if rules depend on what is asked."""
        full = self.scores.full_pass
        if full is None:
            return None
        reached = full.graph.atoms[full.graph.in_rules].cpu().numpy()
        counts = self.source.counts
        concluded = self.known_atoms if counts is None else counts.codes
        return np.unique(np.concatenate([reached, concluded, self.known_atoms]))

    def answers(self, codes: Codes) -> Answers:
        """The answers for atoms, the most probable first; one that cannot be answered is an error."""
        found = self.columns(codes)
        if found.is_refused.any():
            raise self.no_answer(found.atoms[found.is_refused])
        ranked = found.ranked()
        predicates = {predicate.name for predicate in self.base.predicates(ranked.atoms)}
        return replace(ranked, columns=self.argument_names(predicates), asked=len(found))

    def argument_names(self, predicates: Iterable[str]) -> tuple[str, ...]:
        """The names of the columns for the arguments, in a table of answers of these predicates."""
        return argument_names(self.base.language, self.problem.columns, predicates)

    def columns(self, codes: Codes) -> Answers:
        """The predictions for atoms, in their order; those that cannot be answered are marked as refused."""
        return self._believed(self._columns(codes))

    def probabilities(self, codes: Codes, logits: Float64[np.ndarray, " atoms"]) -> Float64[np.ndarray, " atoms"]:
        """That atoms with these logits are true, by the calibration."""
        known = self.problem.train.facts
        return probabilities(self.calibration, self.scores, codes, logits, base=self.base, known=known)

    def _believed(self, answers: Answers) -> Answers:
        """With the networks' probabilities: they may depend on whole rows, and are computed for what is shown."""
        return replace(answers, network=self.probabilities(answers.atoms, answers.logits))

    def _with_share(self, answers: Answers, question: Question) -> Answers:
        """With the share of each unknown atom among those that may be the answer, if one position alone is open."""
        position = question.open_position
        if self.calibration is None or self.calibration.share is None or position is None:
            return answers
        predicate = self.base.language.predicate_index(question.predicate.name)
        pattern = QueryPattern.from_base(self.base, predicate, position)
        row = pattern.located(question.codes()[:1])[0]
        codes = row + pattern.stride * np.arange(pattern.candidates)
        scores = row_scores(self.scores, pattern, row)[0].astype(np.float64) / self.calibration.share
        left = ~are_among(codes, self.problem.train.facts)
        logs = scores[pattern.located(answers.atoms)[1]] - logsumexp(scores[left]) if left.any() else np.zeros(0)
        return replace(answers, share=np.where(answers.truths < 0, np.exp(np.minimum(logs, 0.0)), np.nan))

    def _columns(self, codes: Codes, position: int | None = None) -> Answers:
        """The same before any probability.

        With reciprocals, an atom is answered by the mean of both directions, or as an answer at one `position`.
        """
        codes = np.array(codes, np.int64)
        each, reached, refused = self._answered(codes, position)
        truths = known_truths(self.base, codes, self.problem.train)
        reached = reached if self.network.depth else np.ones(len(codes), bool)
        logits, spread = each.mean(axis=0), each.std(axis=0, ddof=1) if len(each) > 1 else None
        is_asserted = np.isin(codes, self.known_atoms)
        believed = np.zeros(len(codes))
        columns = (codes, truths, is_asserted, logits, reached, refused, believed, spread)
        return Answers(self.base, *columns, calibration=self.calibration)

    def logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The networks' (mean) logits of atoms, in their order; one that cannot be answered is an error."""
        codes = np.array(codes, np.int64)
        each, _, refused = self._answered(codes)
        if refused.any():
            raise self.no_answer(codes[refused])
        return each.mean(axis=0)

    def _answered(self, codes: Codes, position: int | None = None) -> tuple[LogitsOfEach, Marks, Marks]:
        """Logits, whether a ground rule reaches each atom, and whether it has to be refused all the same."""
        reciprocals = reciprocal_codes(self.network.base, codes)
        both = np.stack([codes, np.where(reciprocals >= 0, reciprocals, codes)][: 1 + int((reciprocals >= 0).any())])
        both = both if position is None else both[[-1 if position == 0 else 0]]
        count, shape = len(self.scores.models), both.shape
        logits, reached, refused = np.zeros((count, both.size)), np.zeros(both.size, bool), np.zeros(both.size, bool)
        for which, made in self.scores.passes(both.ravel()):
            rows = made.rows(both.ravel()[which])
            logits[:, which] = made.each[:, rows]
            reached[which] = made.graph.in_rules.numpy()[rows]
            refused[which] = (self._refused_of_full if made is self.scores.full_pass else self._refused(made))[rows]
        is_plain = self.network.counted is None
        each = logits.reshape(count, *shape).mean(axis=1) if is_plain else self.scores.each(codes)
        reached = reached.reshape(shape)[0]
        if self.source.row_counts is not None:
            reached = reached | self.source.row_counts.conclude(codes)
        return each, reached, np.any(refused.reshape(shape), axis=0)

    @cached_property
    def _refused_of_full(self) -> Marks:
        assert self.scores.full_pass is not None
        return self._refused(self.scores.full_pass)

    def _refused(self, made: Pass) -> Marks:
        """Whether each atom of a graph has a constant without a vector, and no rule says anything about it."""
        masked = made.batch.masked
        if masked is None or self.network.paths is not None:
            return np.zeros(len(made.logits), bool)
        masked = masked.cpu()
        if not self._does_without_vectors:
            return masked.numpy()
        is_known = made.known != UNKNOWN
        closed = torch.from_numpy(closed_atoms(self.network.base, made.graph.atoms.cpu().numpy()))
        is_read = is_known if self.network.evidence_input != "off" else torch.zeros_like(masked)
        sources = ~closed & (~masked | is_read)
        return (masked & ~supported(made.graph, sources, is_known, len(self.network.layers))).numpy()

    @property
    def _does_without_vectors(self) -> bool:
        """Whether the networks have learned to answer for atoms without an embedding of their own."""
        has_learned = self.network.evidence_input == "only" or self.options.training.hiding > 0
        return bool(self.network.layers) and has_learned

    def no_answer(self, codes: Codes) -> DataError:
        """Why the first of these atoms has no answer: a constant of it is new to the networks."""
        assert self.network.trained_ids is not None
        arguments, ids = self.base.decode(codes[:1])[1][0], self.network.trained_ids.numpy()
        constant = next(self.base.language.constants[c] for c in arguments if c >= 0 and ids[c] < 0)
        more = f", nor can {counted(len(codes) - 1, 'other atom')}" if len(codes) > 1 else ""
        if not self.network.layers:
            why, hint = "the network has no reasoning layer", "train one with model.layers of 1 or more"
        elif not self._does_without_vectors:
            why = "the network was trained without hiding, so it never learned to do without a vector"
            hint = "train one with training.hiding above 0, or with model.evidence_input = only"
        else:
            why = "no ground rule connects the atom with anything that is known"
            hint = f"add facts about '{constant}' that lead through the rules to what the training knew"
        what = f"{self.base.names(codes[:1])[0]} cannot be answered{more}"
        return DataError(f"{what}: '{constant}' is no constant of the training, and {why}", hint=hint)

    def on(self, problem: Problem) -> "Model":
        """The same networks on another problem that has their predicates: they know no constant, and no fact by heart.

        Only networks along paths can: others have vectors or ground rules of the training's constants.
        """
        if self.network.paths is None:
            hint = 'train with grounding.strategy = "paths"'
            raise ConfigError("only networks along paths answer on another problem", hint=hint)
        if not isinstance(problem, Problem):
            hint = "make one of the facts: r2n.Problem.from_facts(facts, theory)"
            raise ConfigError(f"{type(problem).__name__} is no Problem", hint=hint)
        knowledge, options, calibration = as_trained(problem.knowledge, self.options.grounding), self.options, None
        if options.model.blends:  # what is read along paths answers alone
            alone = {"input_score": False, "rules": "layers"}
            options = options.model_copy(update={"model": options.model.model_copy(update=alone)})
        else:
            calibration = self.calibration
        networks = tuple(network.on_predicates(knowledge.base) for network in self.trained_networks)
        source = make_source(knowledge, options, self.progress, memory=self.memory)
        trained = {"trained_networks": networks, "trained_knowledge": knowledge, "trained_source": source}
        changed = ChangedProblem.from_problem(problem)
        return replace(self, changed=changed, options=options, calibration=calibration, folder=None, **trained)

    def with_facts(
        self, facts: Given, *, domains: Mapping[str, Iterable[str]] = NOTHING, features: GivenFeatures | None = None
    ) -> "Model":
        """Knowing more: facts as text (`!` before those that are false), files, tables, Evidence, or a list of these.

        A new constant belongs to the domains of the positions it stands at; if these are unions, `domains` says which
        part it is in: `{"country": ["atlantis"]}`. `features` are those of new constants, by domain, as texts or
        arrays: `{"paper": {"p7": "its title"}}`.
        """
        return replace(self, changed=self.changed.with_facts(facts, domains, features))

    def without_facts(self, facts: Given) -> "Model":
        """Knowing less: these facts are unknown again (or false, if closed)."""
        return replace(self, changed=self.changed.without_facts(facts))

    def with_changes(
        self,
        more: Sequence[str] = (),
        fewer: Sequence[str] = (),
        domains: Mapping[str, Sequence[str]] = NOTHING,  # pyright: ignore[reportArgumentType]
        names: tuple[str, str, str] = ("with", "without", "constants"),
    ) -> "Model":
        """Fewer facts, and then more; errors call what was given by `names` (options of a command, say)."""
        model, (with_name, without_name, domains_name) = self, names
        if fewer:
            with _naming(without_name):
                model = model.without_facts(list(fewer))
        if more or domains:
            with _naming(with_name if more else domains_name):
                model = model.with_facts(list(more), domains=domains)
        return model

    def without_rules(self, names: Collection[str]) -> "Model":
        """The model without what the rules of these names ground or count; rules left out before stay so."""
        without_rules(self.source, names)  # an unknown name is an error
        return replace(self, rules_off=self.rules_off | frozenset(names))

    def explain(
        self, atom: str | Answer, *, depth: int = 2, top: int | None = 5, against: str | Answer | None = None
    ) -> Explanation:
        """Why an atom (or an answer) is answered as it is: the `top` ground rules that moved it (None: all).

        `depth`: the levels of ground rules, down to what is known; 0 gives the answer alone. With `against`,
        another atom, the ground rules that make the difference are compared.
        """
        if depth < 0 or (top is not None and top < 1):
            what = f"depth is 0 or more, and top is 1 or more, not {depth} and {top}"
            raise ConfigError(what, hint="depth = 0 gives the answer alone")
        code, other = self._one(atom), None if against is None else self._one(against)
        if code == other:
            raise ConfigError(f"{atom} is compared to itself", hint="give another atom as `against`")
        self.logits(np.array([code] if other is None else [code, other], np.int64))  # what has no answer is an error
        make = explain if self.network.paths is None else explain_along_paths
        found = make(self.subject(code), code, depth=depth, top=top, against=other)
        more, others = ((), ()) if found.contrast is None else (found.contrast.reasons, (found.contrast.other,))
        atoms = [member.atom for reason in all_reasons((*found.reasons, *more)) for member in reason.because]
        parsed = map(parse_atom, dict.fromkeys([found.atom, *atoms, *others]))
        names = dict.fromkeys(term for part in parsed if part is not None for term in part.terms if term is not None)
        knowledge = self.problem.knowledge
        labels = constant_labels(knowledge.features, knowledge.language, names, with_texts=True)
        return replace(found, labels=tuple(labels.items()))

    def _one(self, atom: str | Answer) -> int:
        text = atom if isinstance(atom, str) else atom.question
        asked = Question.parse(self.base, text)
        if len(asked) != 1:
            hint = f'ask first: r2n predict RUN "{text}", then explain one of the answers'
            raise DataError(f"'{text}' asks for {len(asked):,} atoms, and one is explained at a time", hint=hint)
        return int(asked.codes()[0])

    def subject(self, code: int | None = None) -> ExplainedModel:
        """What explanations of an atom ask of a model; others of its row are taken to stay as they are."""
        calibrated = None if self.calibration is None else self.calibration.in_words
        position = None if self.network.paths is None else 1  # along paths, as an answer to q(h, ?)

        def beliefs(codes: Codes) -> list[Belief]:
            found = self._believed(self._columns(subject.plain(codes), position)).items
            return [Belief(a.probability, a.logit, a.known, a.closed, a.spread, calibrated=calibrated) for a in found]

        def otherwise(what: WhatIf) -> tuple[AtomLogits, ...]:
            if what.without_rule is not None:
                return tuple(member.without_rules([what.without_rule]) for member in self.members)
            changed = self._without(subject.plain(what.unknown))
            if len(what.false):
                changed = changed.with_facts(Evidence(np.sort(what.false), np.zeros(len(what.false), bool)))
            return changed.members

        calibration = self.calibration
        if calibration is not None and calibration.by_rows and code is not None:
            codes = np.array([code], np.int64)
            own = row_features(
                self.scores, codes, self._columns(codes, position).logits, self.base, self.problem.train.facts
            )
            calibration = calibration.of_atom(own)
        half = 0.0 if calibration is None else calibration.shift
        subject = ExplainedModel(self.members, self.knowledge, beliefs, calibration or expit, otherwise, half)
        return subject

    def _without(self, codes: Codes) -> "Model":
        """Without these facts; a new constant that they alone name stays."""
        language, model = self.base.language, self
        new = {language.constant_id(name) for name in self.changed.new_constants}
        parts = [domain for domain in language.domains if not domain.parts]
        declared = {d.name: [language.constants[i] for i in language.members(d).tolist() if i in new] for d in parts}
        if new:
            model = model.with_facts([], domains={name: held for name, held in declared.items() if held})
        train = model.problem.train
        which = np.isin(train.atoms, codes)
        return model.without_facts(Evidence(train.atoms[which], train.truth[which]))


@contextmanager
def _naming(given: str) -> Iterator[None]:
    """Errors say which of several arguments they are about."""
    try:
        yield
    except DataError as error:
        where, what = error.where, error.what
        if where is not None and where.source is not None:
            where = replace(where, source=f"{given} {where.source}")
        else:
            where, what = where and replace(where, line=None), f"{given}: {what}"
        raise DataError(what, where=where, hint=error.hint) from None


def supported(
    graph: FactorGraph, sources: Bool[Tensor, " atoms"], known: Bool[Tensor, " atoms"], steps: int
) -> Bool[Tensor, " atoms"]:
    """The atoms that ground rules connect, within `steps`, with a source, or with atoms that are all known.

    Each reasoning layer is a step: it leads from an atom to the others of its ground rules. A source is an open atom of
    constants that the training had, or an open fact, but no closed atom. A ground rule in which only one atom is
    missing supports that atom.
    """
    found = sources.clone()
    for _ in range(steps):
        before = found.clone()
        for rows in graph.neighbours:
            ordered, order = rows.sort(dim=1)
            missing = ~known[rows]
            is_first = missing.gather(1, order)  # of the missing atoms: one may stand at several positions
            is_first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
            found[rows[missing & (is_first.sum(dim=1, keepdim=True) == 1)]] = True
            found[rows[before[rows].any(dim=1)]] = True
        if bool((found == before).all()):
            break
    return found
