"""Memory: what was taken, what may be, what is going to be; what would not fit is refused before it is made."""

from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.data.knowledge_base import as_trained
from r2n.data.problem import Problem
from r2n.errors import ConfigError, MemoryLimitError
from r2n.grounding.full import FullGrounder
from r2n.model import memory
from r2n.model.memory import (
    MEMORY_SHARE,
    available_bytes,
    check_graph,
    check_memory,
    check_training,
    count_weights,
    forget_peak,
    parse_size,
    peak_gigabytes,
    shown_size,
    training_bytes,
)
from r2n.model.run import prepare_run
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.options import Options

NOWHERE = Path("/nowhere/at/all")


def test_a_peak_is_seen_and_forgotten() -> None:
    forget_peak()
    before = peak_gigabytes()
    held = np.ones(20_000_000)  # 0.16 GB
    assert peak_gigabytes() >= before + 0.15
    del held
    forget_peak()
    assert peak_gigabytes() < before + 0.1


def test_where_the_system_tells_nothing_the_whole_process_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CLEAR", NOWHERE)
    monkeypatch.setattr(memory, "_STATUS", NOWHERE)
    forget_peak()
    assert peak_gigabytes() > 0.01


class System:
    """The files in which a system tells of memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.groups = folder, folder / "groups"
        for name, path in (("_MEMINFO", "meminfo"), ("_CGROUP", "cgroup"), ("_CGROUPS", "groups")):
            monkeypatch.setattr(memory, name, folder / path)

    def machine(self, free: int) -> None:
        (self.folder / "meminfo").write_text(f"MemTotal: 99999 kB\nMemAvailable:   {free // 1024} kB\n")

    def inside(self, text: str) -> None:
        (self.folder / "cgroup").write_text(text)

    def group(self, path: str, **files: object) -> None:
        folder = self.groups / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / name.replace("memory_", "memory.", 1)).write_text(f"{value}\n")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    return System(tmp_path, monkeypatch)


def test_free_memory_is_that_of_the_machine(system: System) -> None:
    system.machine(8 * 2**30)
    assert available_bytes() == 8 * 2**30
    system.inside("0::/\n")
    system.group("", memory_max="max", memory_current=5, memory_stat="inactive_file 0")
    assert available_bytes() == 8 * 2**30


def test_free_memory_is_that_of_the_narrowest_group(system: System) -> None:
    system.machine(8 * 2**30)
    system.inside("0::/outer/inner\n")
    system.group("outer/inner", memory_max="max", memory_current=5, memory_stat="inactive_file 0")
    system.group("outer", memory_max=1000, memory_current=400, memory_stat="anon 300\ninactive_file 100\n")
    assert available_bytes() == 700
    system.group("outer/inner", memory_max=100, memory_current=400, memory_stat="inactive_file 0")
    assert available_bytes() == 0


def test_free_memory_in_a_group_of_the_first_version(system: System) -> None:
    system.machine(8 * 2**30)
    system.inside("5:cpu,cpuacct:/box\n4:memory:/box/hidden\n0::/\n")
    limits = {"memory_limit_in_bytes": 5000, "memory_usage_in_bytes": 1500}
    system.group("memory", **limits, memory_stat="inactive_file 7\ntotal_inactive_file 250\n")
    assert available_bytes() == 3750


def test_where_the_system_tells_nothing_all_memory_is_free(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_bytes() > 2**28
    monkeypatch.delattr("os.sysconf")
    assert available_bytes() > 2**60


def test_sizes(system: System) -> None:
    system.machine(8 * 2**30)
    sizes = {"8GB": 8 * 10**9, "500 MB": 500 * 10**6, " 1.5 gb ": 1_500_000_000, "2GiB": 2**31, "64k": 64_000}
    sizes |= {".5T": 5 * 10**11, "900B": 900, "0.5": 4 * 2**30, "1": 8 * 2**30}
    assert {text: parse_size(text) for text in sizes} == sizes
    numbers = (0, 512_000_000, 18_449_000_000, 95 * 10**9, 1_234 * 10**9)
    assert [*map(shown_size, numbers)] == ["0 MB", "512 MB", "18.4 GB", "95 GB", "1,234 GB"]


@pytest.mark.parametrize("text", ["", "much", "-3GB", "8XB", "0", "0GB", "1,5GB", "GB", "nan", "1e9", "8"])
def test_what_is_no_size(text: str) -> None:
    hint = "with a unit: 8GB" if text == "8" else "write 8GB, 500MB, or 0.5 for half of what is free"
    with pytest.raises(ConfigError, match=rf"'{text}' is no size of memory\n  {hint}"):
        parse_size(text)


def test_what_needs_too_much_is_refused_with_the_ways_out() -> None:
    what, ways = "the training graph of 118,400,000 atoms", ["take training.negatives = 50", "choose a smaller dim"]
    check_memory(18 * 10**9, 18_400_000_000, what=what, hints=ways)
    with pytest.raises(MemoryLimitError) as caught:
        check_memory(95 * 10**9, 18_400_000_000, what=what, hints=ways)
    assert str(caught.value) == (
        "the training graph of 118,400,000 atoms needs about 95 GB, more than the 18.4 GB that --memory allows\n"
        "  take training.negatives = 50; or choose a smaller dim; or allow more with --memory SIZE"
    )


def test_by_default_a_share_of_what_is_free_may_be_taken(system: System) -> None:
    system.machine(10 * 10**9)
    free = available_bytes()
    check_memory(int(MEMORY_SHARE * free), None, what="it", hints=[])
    with pytest.raises(
        MemoryLimitError, match=r"than the 8 GB that may be taken \(0.8 of the 10 GB free\)\n  allow more"
    ):
        check_memory(int(MEMORY_SHARE * free) + 1, None, what="it", hints=[])


# Measured peaks of two steps above the process before them, in MiB: (atoms, ground rules, positions, dim, layers),
# negatives, and options.
MEASURED: list[tuple[int, tuple[int, int, int, int, int], int, str]] = [
    (7379, (1_040_386, 0, 0, 100, 0), 1_200_000, ""),
    (1698, (1_040_386, 0, 0, 32, 0), 1_200_000, "model.input=distmult"),
    (898, (1_040_386, 0, 0, 32, 0), 1_200_000, "model.input=transe"),
    (1407, (1_040_386, 0, 0, 32, 0), 1_200_000, "model.input=mlp"),
    (964, (36_922, 1_000_000, 3_000_000, 32, 3), 40_000, ""),
    (2629, (36_922, 1_000_000, 3_000_000, 100, 3), 40_000, ""),
    (4685, (1_055_600, 527_800, 1_583_400, 32, 3), 240_000, ""),
    (339, (36_922, 1_000_000, 3_000_000, 32, 3), 40_000, "training.semantic_weight=0"),
    (1407, (36_922, 1_000_000, 3_000_000, 32, 3), 40_000, "model.mlp=shallow"),
    (4267, (36_922, 1_000_000, 3_000_000, 32, 3), 40_000, "model.aggregation=max"),
    (1091, (555_144, 0, 0, 32, 0), 600_000, "model.input=pair"),
    (1068, (160_000, 111_133, 333_399, 32, 3), 7_521_600, ""),
]


def estimate(atoms: int, ground_rules: int, positions: int, dim: int, layers: int, negatives: int, change: str) -> int:
    options = Options().changed([f"model.dim={dim}", f"model.layers={layers}", *([change] if change else [])])
    return training_bytes(options, atoms, ground_rules=ground_rules, positions=positions, negatives=negatives)


def test_the_estimate_is_near_what_was_measured() -> None:
    for peak, counts, negatives, change in MEASURED:
        assert 0.7 <= estimate(*counts, negatives, change) / (peak * 2**20) <= 2, (counts, change)


def test_more_of_anything_never_needs_less() -> None:
    counts = (1000, 5000, 15_000, 32, 3, 1000)
    for i in range(len(counts)):
        more = [n * (10 if i == j else 1) for j, n in enumerate(counts)]
        assert estimate(*more, change="") > estimate(*counts, change="")
    assert estimate(0, 0, 0, 32, 0, 0, "") < 2**28


def test_atoms_are_counted_before_a_negative_is_drawn(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    check_training(toy.knowledge, toy.options, 10**9)
    monkeypatch.setattr("r2n.training.batches.draw_negatives", lambda *_: pytest.fail("drawn"))
    with pytest.raises(MemoryLimitError, match=r"a training on \d+ facts and negatives needs about") as caught:
        prepare_run(toy, toy.options, 0, memory=1000)
    assert "training.negatives" in str(caught.value)


def test_a_graph_is_measured_before_it_is_laid_out(toy: Problem) -> None:
    graph = GroundedOnDemand.from_knowledge(toy.knowledge, FullGrounder()).full_graph
    assert graph is not None
    check_graph(toy.options, 10**9, graph)
    with pytest.raises(MemoryLimitError, match=r"the training graph of \d+ atoms and \d+ ground rules"):
        check_graph(toy.options, 1000, graph)


def test_a_whole_base_over_grids_needs_little_and_rule_by_rule_much() -> None:
    problem = r2n.load("umls")
    knowledge, wide = as_trained(problem.knowledge, problem.options.grounding), ["model.dim=100"]
    check_training(knowledge, problem.options.changed(wide), 2 * 10**9)
    for change in ("model.mlp=deep", "training.hiding=0.1", "model.evidence_input=add", "model.aggregation=max"):
        with pytest.raises(MemoryLimitError, match="1,676,700 atoms"):
            check_training(knowledge, problem.options.changed([*wide, change]), 2 * 10**9)


def test_the_rows_of_a_batch_are_measured(toy: Problem) -> None:
    """All constants are compared with, or those drawn; a smaller batch needs less."""
    facts, constants = len(toy.knowledge.evidence), len(toy.knowledge.language.constants)
    for changes, compared in (
        (["training.loss=full-softmax", "training.batch_size=4"], 4 * constants),
        (["training.loss=full-softmax", "training.batch_size=10000"], facts * constants),
        (["training.loss=softmax", "training.batch_size=4", "training.negatives=3"], 4 * 3),
        (["training.loss=softmax", "training.batch_size=4", "training.negatives=999"], 4 * constants),
    ):
        options = toy.options.changed(changes)
        check_training(toy.knowledge, options, 10**9)
        with pytest.raises(MemoryLimitError, match=f"a step that compares {compared:,} candidates needs") as caught:
            check_training(toy.knowledge, options, 1000)
        assert "training.batch_size" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["model.input=mlp"],
        ["model.mlp=shallow", "model.rule_dim=40"],
        ["model.reasoner=fgnn"],
        ["model.rule_network=shared", "model.layers=3"],
        ["model.reasoner=none"],
        ["model.output=linear", "model.layers=2"],
    ],
)
def test_weights_are_counted_before_they_are_made(changes: list[str], toy: Problem) -> None:
    options = toy.options.changed(["model.dim=64", *changes]).model
    made = sum(weight.numel() for weight in R2N.build(toy.knowledge, options).parameters())
    assert made == pytest.approx(count_weights(toy.knowledge, options), rel=0.05)


@pytest.mark.parametrize("change", ["model.dim=100000", "model.rule_dim=1000000", "model.layers=1000"])
def test_a_network_that_would_not_fit_is_refused(change: str, toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.model.run.R2N.build", lambda *_, **__: pytest.fail("made"))
    with pytest.raises(MemoryLimitError, match=r"a network of about [\d,]+ weights needs about") as caught:
        prepare_run(toy, toy.options.changed(["model.dim=256", change]), 0, memory=10**9)
    assert "model.dim" in str(caught.value)


@pytest.mark.parametrize(("seed", "size"), [(-1, 1), (2**63, 1), (10**30, 1), (2**63 - 1, 2)])
def test_a_seed_beyond_64_bits_is_refused(seed: int, size: int, toy: Problem) -> None:
    with pytest.raises(ConfigError, match=f"the seed is {seed + size - 1}"):
        prepare_run(toy, toy.options, seed, size=size)
