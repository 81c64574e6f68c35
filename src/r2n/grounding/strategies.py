"""Rules -> ground rules: options of a problem file -> the objects they name."""

from collections.abc import Callable
from pathlib import Path

from r2n.errors import ConfigError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.engines import DuckDBEngine, Engine
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.partitioned import KeptGrounder
from r2n.grounding.spark_engine import SparkEngine
from r2n.knowledge.options import GroundingOptions
from r2n.knowledge.spark_session import SparkPlace, is_spark

GROUNDERS = {"full": FullGrounder, "known-body": KnownBodyGrounder, "backward": BackwardGrounder}
ENGINES: dict[str, Callable[[int | None], Engine]] = {
    "duckdb": DuckDBEngine,
    "spark": lambda memory: SparkEngine(SparkPlace("spark", memory)),
}


def make_grounder(options: GroundingOptions) -> Grounder:
    """The strategy that the options name."""
    if options.strategy == "backward":
        if options.kept is not None:
            raise ConfigError(
                "grounding.kept is of no use to backward grounding, which starts from what is asked",
                hint="leave it out, or take another strategy",
            )
        return BackwardGrounder(options.width, options.depth, options.last_width, options.prune, options.max_groundings)
    grounder = GROUNDERS[options.strategy](options.max_groundings)
    return grounder if options.kept is None else KeptGrounder(grounder, Path(options.kept))


def make_engine(name: str = "duckdb", memory: int | None = None) -> Engine:
    """The engine of this name: where large queries run, which changes no answer and stays out of fingerprints.

    A name may also be where Spark runs: `local[2]`, `spark://...`, `sc://...`. `memory`: the bytes that it may take.
    """
    if name not in ENGINES and is_spark(name):
        return SparkEngine(SparkPlace(name, memory))
    if name not in ENGINES:
        hint = f"there is: {', '.join(ENGINES)}, local[N], spark://HOST:PORT, sc://HOST:PORT"
        raise ConfigError(f"there is no engine '{name}'", hint=hint)
    return ENGINES[name](memory)
