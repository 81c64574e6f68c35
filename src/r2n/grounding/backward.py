"""Rules -> ground rules: around the queries, by backward chaining BC_{w,d} of width w and depth d."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from r2n.errors import GroundingError
from r2n.grounding.ground_rules import Grounding, GroundRules, distinct_codes
from r2n.grounding.neighbourhoods import Neighbourhoods, Paths
from r2n.grounding.proofs import proved
from r2n.grounding.search import Search
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS
from r2n.knowledge.herbrand import Codes
from r2n.progress import Progress, no_progress

QUERIES_AT_ONCE = 2**18
FEW_QUERIES = 2**10


@dataclass(frozen=True)
class BackwardGrounder:
    """Backward chaining from the queries: at most `width` unknown body atoms a ground rule, `depth` steps.

    In the last step `last_width` unknown body atoms are allowed. `prune` keeps only ground rules whose unknown
    body atoms are proved by others within `depth` rounds; without it every ground rule met is kept.
    """

    width: int = 1
    depth: int = 2
    last_width: int = 0
    prune: bool = True
    max_groundings: int = MAX_GROUNDINGS

    def __post_init__(self) -> None:
        """Refuse options that mean nothing."""
        if self.width < 0 or self.last_width < 0 or self.depth < 1:
            raise GroundingError(
                f"backward grounding of width {self.width}, last width {self.last_width} and depth {self.depth}",
                hint="widths are 0 or more, the depth is 1 or more",
            )

    @property
    def widths(self) -> list[int]:
        """How many unknown body literals a ground rule may have, step by step."""
        return [self.width] * (self.depth - 1) + [self.last_width]

    @property
    def reads_evidence(self) -> bool:
        """Known atoms are where the search ends."""
        return True

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding around all queries together; around one query it may be smaller (see `neighbourhoods`)."""
        if queries is None:
            raise GroundingError("backward grounding starts from queries, and there are none", hint="give queries")
        search = Search(store, self.max_groundings, prune=self.prune)
        search.run(np.unique(np.asarray(queries, np.int64)), self.widths, self.width, progress)
        kept = self._kept(search)
        return Grounding(
            tuple(
                GroundRules(part.rule, part.atoms[rows], part.estimate, part.seconds)
                for part, rows in zip(search.found, kept, strict=True)
            )
        )

    def _kept(self, search: Search) -> list[np.ndarray]:
        """Which of the ground rules found stay; one mask a rule."""
        found = search.found
        if not self.prune:
            return [np.ones(len(part.atoms), bool) for part in found]
        codes = distinct_codes([part.atoms for part in found])
        rows = [np.searchsorted(codes, part.atoms) for part in found]
        return proved([part.rule for part in found], rows, [part.known for part in found], self.depth)

    def _searched(self, store: Store, queries: Codes, progress: Progress) -> Search:
        """All that the search of any of the queries (sorted, distinct) may find, proved or not."""
        search = Search(store, self.max_groundings, prune=self.prune)
        widest = [max(self.width, self.last_width)] * (self.depth - 1) + [self.last_width]
        search.run(queries, widest, self.width, progress)  # an atom early for one query may come last for another
        return search

    def rules_met(self, store: Store, queries: Codes) -> Bool[np.ndarray, " rules"]:
        """Which rules the search meets at all, proved or not: without another, nothing would be found otherwise."""
        found = self._searched(store, np.unique(np.asarray(queries, np.int64)), no_progress).found
        return np.array([len(part.atoms) > 0 for part in found], bool)

    def neighbourhoods(self, store: Store, queries: Codes, progress: Progress = no_progress) -> Neighbourhoods:
        """For each of the queries (sorted, distinct) the ground rules that `ground` finds around it alone."""
        search = self._searched(store, queries, progress)
        paths = Paths.through(search.found, queries, len(store.language.constants))
        found = paths.followed(self.widths, self.max_groundings)
        return paths.neighbourhoods(found, self.depth if self.prune else None)

    def may_reach(self, store: Store, queries: Codes) -> Bool[np.ndarray, " queries"]:
        """Which queries the first step concludes by a ground rule, proved or not.

        Where there are too many ground rules to look at in one go, some queries at a time; in the end, all may be.
        """
        distinct = np.unique(np.asarray(queries, np.int64))
        parts = np.array_split(distinct, -(-len(distinct) // QUERIES_AT_ONCE)) if len(distinct) else []
        return np.isin(queries, distinct_codes([self._concluded(store, part) for part in parts]))

    def _concluded(self, store: Store, queries: Codes) -> Codes:
        """Queries (distinct), and perhaps other atoms, that the first step concludes."""
        search = Search(store, self.max_groundings, prune=self.prune)
        try:
            search.run(queries, self.widths[:1], self.width, no_progress)
        except GroundingError:
            if len(queries) <= FEW_QUERIES:
                return queries
            return distinct_codes([self._concluded(store, half) for half in np.array_split(queries, 2)])
        return distinct_codes([part.atoms[:, list(part.rule.head_positions)] for part in search.found])
