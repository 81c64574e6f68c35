"""The command line: r2n datasets list, show, download, generate."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from r2n.cli.problems import check
from r2n.cli.screen import JsonOption, ScreenTable, new_path, print_json, progress, screen
from r2n.datasets.benchmarks import DATASETS
from r2n.datasets.download import download
from r2n.datasets.planted import PlantedOptions, plant
from r2n.datasets.streamed import StreamedOptions, write_streamed
from r2n.errors import ConfigError, nearest

_PLANTED = PlantedOptions()

datasets_app = typer.Typer(no_args_is_help=True, help="Known problems.")


@datasets_app.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """The known problems."""
    if as_json:
        print_json([_dataset_row(name) for name in DATASETS])
        return
    table = ScreenTable("name", "title", "licence", "where", box=None, header_style="dim")
    for name, dataset in DATASETS.items():
        where = "in the package" if dataset.is_embedded else "download"
        table.add_texts([name, dataset.title, dataset.licence, where])
    screen().print(table)


def _dataset_row(name: str) -> dict[str, Any]:
    dataset = DATASETS[name]
    return {"name": name, "title": dataset.title, "licence": dataset.licence, "embedded": dataset.is_embedded}


@datasets_app.command("show")
def show_dataset(name: Annotated[str, typer.Argument()], as_json: JsonOption = False) -> None:
    """What is in a known problem."""
    check(name, as_json=as_json)


@datasets_app.command("download")
def download_dataset(name: Annotated[str, typer.Argument()]) -> None:
    """Fetch a known problem that does not travel with the package."""
    dataset = DATASETS.get(name)
    if dataset is None:
        hint = nearest(name, DATASETS) or f"known: {', '.join(DATASETS)}"
        raise ConfigError(f"'{name}' is no known dataset", hint=hint)
    if dataset.is_embedded:
        typer.echo(f"{name} is in the package: nothing to download")
        return
    with progress(name) as shown:
        folder = download(dataset.folder, progress=shown)
    typer.echo(f"{name} is in {folder}")


@datasets_app.command("generate")
def generate_dataset(
    folder: Annotated[
        Path | None, typer.Argument(parser=new_path, help="The new folder of the problem: text, made in memory.")
    ] = None,
    facts: Annotated[int | None, typer.Option(help="Those kept back as queries included.")] = None,
    constants: Annotated[int | None, typer.Option(help="With --out by default a tenth of the facts.")] = None,
    relations: Annotated[int | None, typer.Option()] = None,
    rules: Annotated[int | None, typer.Option(help="Of which a fifth is false.")] = None,
    noise: Annotated[float | None, typer.Option(help="Share of facts that are noise.")] = None,
    communities: Annotated[int | None, typer.Option(help="Of constants; not with --out.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = _PLANTED.seed,
    out: Annotated[
        Path | None, typer.Option(parser=new_path, help="The new folder instead: Parquet, streamed, of any size.")
    ] = None,
) -> None:
    """Generate a graph with planted rules, exceptions and noise, to try r2n on."""
    numbers = {"facts": facts, "constants": constants, "relations": relations, "rules": rules, "noise": noise}
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    if (folder is None) == (out is None):
        raise ConfigError("name one folder", hint="FOLDER for text that is made in memory, or --out DIR for Parquet")
    if out is not None:
        if communities is not None:
            raise ConfigError("--communities has no meaning with --out", hint="leave it out")
        _generate_streamed(StreamedOptions(**given, seed=seed), out)
        return
    assert folder is not None
    options = replace(_PLANTED, **given, communities=communities or _PLANTED.communities, seed=seed)
    planted = plant(options)
    planted.write(folder)
    sizes = ", ".join(f"{name} {len(part):,}" for name, part in planted.splits.items())
    typer.echo(f"{options.facts:,} facts ({sizes}), {len(planted.rules):,} rules, in {folder}")


def _generate_streamed(options: StreamedOptions, out: Path) -> None:
    with progress(str(out)) as shown:
        made = write_streamed(options, out, shown)
    sizes = ", ".join(f"{name} {size:,}" for name, size in made.items())
    typer.echo(f"{sum(made.values()):,} facts ({sizes}), {options.rules:,} rules, in {out}")
