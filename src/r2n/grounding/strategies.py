"""Rules -> ground rules: options of a problem file -> the objects they name."""

from collections.abc import Callable

from r2n.errors import ConfigError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.engines import DuckDBEngine, Engine
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.knowledge.options import GroundingOptions

GROUNDERS = {"full": FullGrounder, "known-body": KnownBodyGrounder, "backward": BackwardGrounder}
ENGINES: dict[str, Callable[[int | None], Engine]] = {"duckdb": DuckDBEngine}


def make_grounder(options: GroundingOptions) -> Grounder:
    """The strategy that the options name."""
    if options.strategy == "backward":
        return BackwardGrounder(options.width, options.depth, options.last_width, options.prune, options.max_groundings)
    return GROUNDERS[options.strategy](options.max_groundings)


def make_engine(name: str = "duckdb", memory: int | None = None) -> Engine:
    """The engine of this name: where large queries run, which changes no answer and stays out of fingerprints.

    `memory`: the bytes that it may take.
    """
    if name not in ENGINES:
        raise ConfigError(f"there is no engine '{name}'", hint=f"there is: {', '.join(ENGINES)}")
    return ENGINES[name](memory)
