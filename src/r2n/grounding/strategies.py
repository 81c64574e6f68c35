"""Who decides: options of a problem file -> the objects they name."""

from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.knowledge.problem_file import GroundingOptions

GROUNDERS = {"full": FullGrounder, "known-body": KnownBodyGrounder, "backward": BackwardGrounder}


def make_grounder(options: GroundingOptions) -> Grounder:
    """The strategy that the options name."""
    if options.strategy == "backward":
        return BackwardGrounder(options.width, options.depth, options.last_width, options.prune, options.max_groundings)
    return GROUNDERS[options.strategy](options.max_groundings)
