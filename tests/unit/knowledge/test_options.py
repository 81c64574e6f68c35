"""Options: declared once, given as sections or as keywords, and refused with the right key."""

import pytest

from r2n.errors import ConfigError
from r2n.knowledge.options import (
    GroundingOptions,
    HidingOptions,
    ModelOptions,
    ObjectiveOptions,
    OptimisationOptions,
    Options,
    SamplingOptions,
    SelectionOptions,
    TrainingOptions,
    chosen,
)

PARTS = (SelectionOptions, HidingOptions, OptimisationOptions, ObjectiveOptions, SamplingOptions)


def test_the_training_section_has_the_keys_of_all_its_parts_and_no_others() -> None:
    names = [name for part in PARTS for name in part.model_fields]
    assert len(names) == len(set(names)), "no key is declared twice"
    assert set(TrainingOptions.model_fields) == set(names)
    for part in PARTS:
        for name, field in part.model_fields.items():
            assert TrainingOptions.model_fields[name].default == field.default


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
    ],
)
def test_a_wrong_assignment_is_refused_with_the_right_key(change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Options().changed([change])


def test_assignments_are_made_in_order() -> None:
    changed = Options().changed(["model.dim=5", "model.dim=6", "grounding.strategy=backward", "training.clip=0.5"])
    assert changed == Options(
        grounding=GroundingOptions(strategy="backward"), model=ModelOptions(dim=6), training=TrainingOptions(clip=0.5)
    )


@pytest.mark.parametrize(("options", "has"), [({}, True), ({"layers": 0}, False), ({"reasoner": "none"}, False)])
def test_a_network_without_layers_reads_no_rules(options: dict[str, object], has: bool) -> None:
    assert ModelOptions.model_validate(options).has_layers == has
