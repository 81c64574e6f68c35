"""The command line: r2n explain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2n.cli.changed_facts import ConstantOption, WithOption, WithoutOption, changed, tell_of_changes
from r2n.cli.screen import DeviceOption, JsonOption, RunArgument, print_json, progress, screen

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.explanation.records import Explanation
    from r2n.prediction.predictor import Predictor

AtomArgument = Annotated[str, typer.Argument(metavar="ATOM", help='What is explained: "locatedIn(italy, europe)".')]
AgainstOption = Annotated[
    str | None, typer.Option(metavar="ATOM", help='Why not rather this one: "locatedIn(italy, africa)".')
]
DepthOption = Annotated[int, typer.Option(min=0, help="How many ground rules deep the reasons of reasons go.")]
TopOption = Annotated[int, typer.Option(min=1, help="How many ground rules of each atom are listed.")]
HtmlOption = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a drawing.")]
PngOption = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write the drawing.")]


def explain(
    run: RunArgument,
    atom: AtomArgument,
    against: AgainstOption = None,
    depth: DepthOption = 2,
    top: TopOption = 5,
    more: WithOption = None,
    fewer: WithoutOption = None,
    constants: ConstantOption = None,
    html: HtmlOption = None,
    png: PngOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Say why a trained network answers as it does, and what would turn the answer."""
    from r2n.prediction.predictor import Predictor
    from r2n.reporting.files import check_writable

    for path in (html, png):
        if path is not None:
            check_writable(path)
    with progress(str(run)) as shown:
        predictor = Predictor.load(run, device=device, progress=shown)
        predictor = changed(predictor, more or [], fewer or [], constants or [])
        found: Explanation = predictor.explain(atom, depth=depth, top=top, against=against)  # pyright: ignore[reportAttributeAccessIssue]
    tell_of_changes(predictor, facts_changed=bool(more or fewer))
    about = [*_about(run, predictor), *(("with", fact) for fact in more or []), *(("without", f) for f in fewer or [])]
    _write(found, html, png, about)
    if as_json:
        print_json(found.to_dict())
    else:
        print_tree(found)


def _about(run: Path, predictor: "Predictor") -> list[tuple[str, str]]:
    return [("problem", predictor.changed.problem.name), ("run", str(run))]


def _write(found: "Explanation", html: Path | None, png: Path | None, about: list[tuple[str, str]]) -> None:
    """The files that were asked for, and where they are on standard error."""
    if html is not None:
        from r2n.reporting.explanations.page import explanation_page
        from r2n.reporting.files import write_file

        write_file(html, explanation_page(found, about=about).encode())
    if png is not None:
        from r2n.reporting.explanations.png import write_explanation_png

        write_explanation_png(found, png)
    for path in (html, png):
        if path is not None:
            typer.echo(f"written: {path}", err=True)


def print_tree(found: "Explanation") -> None:
    """An explanation as a tree on standard output."""
    from r2n.explanation.text import explanation_tree

    console = screen()
    console.print(explanation_tree(found, in_ascii=console.options.ascii_only))
