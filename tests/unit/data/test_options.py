"""Options: declared once, given as sections or as keywords, and refused with the right key."""

import pytest

from r2n.errors import ConfigError
from r2n.options import GroundingOptions, ModelOptions, Options, TrainingOptions, chosen


def test_options_come_as_a_section_as_keywords_or_as_both() -> None:
    assert chosen(ModelOptions, None, {"dim": 7}) == ModelOptions(dim=7)
    assert chosen(ModelOptions, ModelOptions(dim=7, layers=1), {"layers": 2}) == ModelOptions(dim=7, layers=2)
    assert chosen(ModelOptions, None, {}) == ModelOptions()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.semantic_weight=0.3", r"unknown key 'semantic_weight' in \[model\]\n  it belongs in \[training\]"),
        ("model.reciprocal=true", r"unknown key 'reciprocal' in \[model\]\n  it belongs in \[grounding\]"),
        ("training.epoch=3", r"unknown key 'epoch' in \[training\]\n  did you mean 'epochs'\?"),
        ("model.input=compex", r"model.input: input should be .*\n  did you mean 'complex'\?"),
        ("training.hiding=1.0", "training.hiding: input should be less than 1"),
        ("epochs=3", "'epochs=3' is no assignment"),
        ("trainig.epochs=3", "is no assignment"),
        ("model.layers", "is no assignment"),
        ("model.dim=" + "9" * 5_000, "model.dim: input should be"),
    ],
)
def test_a_wrong_assignment_is_refused_with_the_right_key(change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Options().changed([change])


def test_assignments_are_made_in_order() -> None:
    changed = Options().changed(["model.dim=5", "model.dim=6", "grounding.strategy=backward", "training.clip=0.5"])
    grounding, training = GroundingOptions(strategy="backward"), TrainingOptions(clip=0.5)
    assert changed == Options(grounding=grounding, model=ModelOptions(dim=6), training=training)
    assert Options().model.dim != 6


@pytest.mark.parametrize(("options", "has"), [({}, True), ({"layers": 0}, False), ({"reasoner": "none"}, False)])
def test_a_network_without_layers_reads_no_rules(options: dict[str, object], has: bool) -> None:
    assert ModelOptions.model_validate(options).has_layers == has


@pytest.mark.parametrize(
    "change",
    ['model.dim="4"', "model.dim=true", "model.dim=4.0", "model.residual=1", 'model.residual="yes"',
     'training.learning_rate="0.1"', "training.learning_rate=true", "training.corrupted_positions=[true]",
     'training.corrupted_positions=["1"]'],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_not_converted(change: str) -> None:
    with pytest.raises(ConfigError, match=f"{change.split('=')[0]}.*: input should be a valid"):
        Options().changed([change])


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "1e308"])
@pytest.mark.parametrize("key", ["training.weight_decay", "training.learning_rate", "training.clip", "training.n3"])
def test_a_number_that_no_network_computes_with_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        Options().changed([f"{key}={value}"])


@pytest.mark.parametrize("value", [2**63, 10**30])
def test_a_whole_number_beyond_64_bits_is_refused(value: int) -> None:
    sections = {"grounding": GroundingOptions, "model": ModelOptions, "training": TrainingOptions}
    keys = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, field in section.model_fields.items()
        if isinstance(field.default, int) and not isinstance(field.default, bool)
    ]
    assert {"model.dim", "grounding.max_groundings", "grounding.depth", "training.epochs"} <= set(keys)
    for key in (*keys, "training.negatives", "training.threads", "training.batch_size", "model.rule_dim"):
        with pytest.raises(ConfigError, match=f"{key}: input should be less than or equal to"):
            Options().changed([f"{key}={value}"])


@pytest.mark.parametrize(
    ("key", "most"), [("model.layers", 1_000), ("grounding.depth", 1_000_000), ("training.threads", 1_024)]
)
def test_more_than_anybody_can_run_is_refused(key: str, most: int) -> None:
    Options().changed([f"{key}={most}"])
    with pytest.raises(ConfigError, match=f"{key}: input should be less than or equal to {most}"):
        Options().changed([f"{key}={most + 1}"])


def test_lists_and_whole_numbers_are_taken_as_toml_has_them() -> None:
    changed = Options().changed(["training.corrupted_positions=[0, -1]", "training.learning_rate=1"])
    assert changed.training.corrupted_positions == (0, -1)
    assert changed.training.learning_rate == 1.0
    assert Options.model_validate_json(changed.model_dump_json()) == changed
