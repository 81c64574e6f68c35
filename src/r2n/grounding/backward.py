"""Rules -> ground rules: around the queries, by backward chaining BC_{w,d} of width w and depth d."""

from dataclasses import dataclass

import numpy as np

from r2n.errors import GroundingError
from r2n.grounding.ground_rules import Grounding, GroundRules, distinct_codes
from r2n.grounding.neighbourhoods import Neighbourhoods, Paths
from r2n.grounding.proofs import proved
from r2n.grounding.search import Search
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS
from r2n.knowledge.herbrand import Codes
from r2n.progress import Progress, no_progress


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

    def neighbourhoods(self, store: Store, queries: Codes, progress: Progress = no_progress) -> Neighbourhoods:
        """For each of the queries (sorted, distinct) the ground rules that `ground` finds around it alone."""
        search = Search(store, self.max_groundings, prune=self.prune)
        widest = [max(self.width, self.last_width)] * (self.depth - 1) + [self.last_width]
        search.run(queries, widest, self.width, progress)  # an atom early for one query may come last for another
        paths = Paths.through(search.found, queries, len(store.language.constants))
        found = paths.followed(self.widths, self.max_groundings)
        return paths.neighbourhoods(found, self.depth if self.prune else None)
