"""Facts on the command line: what became of them is said."""

import pytest

from r2n.cli.prediction import by_domain, print_changes
from r2n.errors import ConfigError
from r2n.model.model import Model
from r2n.model.run import Run


def test_constants_are_written_with_their_domain() -> None:
    constants = ["country=atlantis", " country = lemuria ", "region=ocean"]
    assert by_domain(constants) == {"country": ["atlantis", "lemuria"], "region": ["ocean"]}
    for wrong in ("atlantis", "=atlantis", "country="):
        with pytest.raises(ConfigError, match="write --constant DOMAIN=NAME"):
            by_domain([wrong])


def test_new_constants_and_facts_that_are_not_read_are_said(toy_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    model, new = Model.from_run(toy_run).with_facts(["near(n5, nort)"]), "new constant: nort (did you mean 'north'?)\n"
    print_changes(model, facts_changed=False)
    assert capsys.readouterr().err == new
    print_changes(model, facts_changed=True)
    not_read = "this network does not read facts (model.evidence_input = off): they act through the grounding alone\n"
    assert capsys.readouterr().err == new + not_read
