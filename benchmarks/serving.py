"""A served run under load: many clients at once, as a ratio to one caller of the same model without a server.

    python benchmarks/serving.py [RUN] [--requests 5000] [--clients 64]

It listens at 127.0.0.1 alone. Without RUN, a small one is trained first. An error, or memory that grows by more than a
tenth, ends it with exit code 1.
"""

import argparse
import http.client
import json
import sys
import tempfile
from pathlib import Path
from threading import Lock, Thread
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.served_problem import write_served_run
from tests.serving.listening import Listening, listening

MOST_GROWTH = 1.10


class Load:
    """Clients that ask one query after the other, each over one connection."""

    def __init__(self, server: Listening, queries: list[str], requests: int) -> None:
        """So many requests in all."""
        self.server, self.queries, self.left = server, queries, requests
        self.lock, self.seconds, self.errors = Lock(), [], []

    def run(self, clients: int) -> float:
        """The seconds that all of it takes."""
        threads = [Thread(target=self._ask) for _ in range(clients)]
        started = perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return perf_counter() - started

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while (number := self._next()) >= 0:
            body = json.dumps({"queries": [self.queries[number % len(self.queries)]], "top": 10})
            started = perf_counter()
            try:
                connection.request("POST", "/api/query", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                told = response.read()
                if response.status != 200 or b'"results"' not in told:
                    self.errors.append(f"{response.status}: {told[:200]!r}")
            except OSError as error:
                self.errors.append(repr(error))
                connection.close()
            self.seconds.append(perf_counter() - started)

    def _next(self) -> int:
        with self.lock:
            self.left -= 1
            return self.left


def alone(run: Path, queries: list[str], requests: int) -> float:
    """Queries a second by one caller of the model itself, with the same JSON made of the answers."""
    from r2n.serving.app import preload
    from r2n.serving.queries import answer_queries
    from r2n.serving.session import Limits

    session = preload(run, Limits())
    started = perf_counter()
    for number in range(requests):
        answer_queries(session, [{"queries": [queries[number % len(queries)]], "top": 10}])
    return requests / (perf_counter() - started)


def questions(run: Path) -> list[str]:
    """What is asked: each known atom's predicate with its last constant open."""
    from r2n.data.atom_text import written_name
    from r2n.model.model import Model

    base = Model.load(run).base
    found = []
    for predicate in base.language.predicates:
        names = [base.language.constants[i] for i in base.language.members(predicate.domains[0])[:100]]
        found += [
            f"{written_name(predicate.name)}({', '.join([written_name(n), *['?'] * (predicate.arity - 1)])})"
            for n in names
        ]
    return found


def main() -> None:
    """Measure, print, and say whether it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--clients", type=int, default=64)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = asked.run or write_served_run(Path(folder))
        queries = questions(run)
        with listening(run) as server:
            warm = Load(server, queries, asked.requests // 10)
            warm.run(asked.clients)
            before = server.memory()
            load = Load(server, queries, asked.requests)
            seconds = load.run(asked.clients)
            after = server.memory()
        bare = alone(run, queries, min(1_000, asked.requests))
    errors, rate = warm.errors + load.errors, asked.requests / seconds
    slow = sorted(load.seconds)[int(0.99 * len(load.seconds))]
    print(f"{asked.requests:,} requests by {asked.clients} clients: {len(errors)} errors, {rate:,.0f} a second")
    print(f"of a request: median {sorted(load.seconds)[len(load.seconds) // 2]:.3f} s, 99 % within {slow:.3f} s")
    print(f"one caller without a server: {bare:,.0f} a second; ratio {rate / bare:.2f}")
    sizes = f"{before / 2**20:,.0f} MB before, {after / 2**20:,.0f} after"
    print(f"memory of all processes: {sizes}, {after / before:.3f} times")
    print(*errors[:5], sep="\n")
    sys.exit(bool(errors) or after > MOST_GROWTH * before)


if __name__ == "__main__":
    main()
