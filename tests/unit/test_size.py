"""Nothing in the sources is too large to be read in one go."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import r2n

SOURCE = Path(__file__).parents[2] / "src" / "r2n"
MOST_LINES_OF_A_FILE = 300
MOST_LINES_OF_A_FUNCTION = 40  # without its docstring
MOST_PARAMETERS = 10
MOST_PUBLIC_NAMES = 30

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files() -> list[str]:
    return sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


def parsed(file: str) -> ast.Module:
    return ast.parse((SOURCE / file).read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def lines(function: Function) -> int:
    """From its first decorator to its end, without the lines of its docstring."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    without = 0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    return (function.end_lineno or 0) - first + 1 - without


def own_parameters(function: Function) -> int:
    """All parameters but `self`."""
    given = function.args
    extra = sum(part is not None for part in (given.vararg, given.kwarg))
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) + extra - 1


def is_dataclass(node: ast.ClassDef) -> bool:
    named = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(isinstance(d, ast.Name) and d.id == "dataclass" for d in named)


def fields(node: ast.ClassDef) -> int:
    """The fields that a dataclass takes when it is made."""
    made_later = [f for f in node.body if isinstance(f, ast.AnnAssign) and "init=False" in ast.unparse(f)]
    constants = [f for f in node.body if isinstance(f, ast.AnnAssign) and "ClassVar" in ast.unparse(f.annotation)]
    return sum(isinstance(part, ast.AnnAssign) for part in node.body) - len(made_later) - len(constants)


def constructors(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each class that is constructed by an `__init__` or as a dataclass, with the number of its parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            written = [f for f in node.body if isinstance(f, Function) and f.name == "__init__"]
            if written:
                yield node.name, own_parameters(written[0])
            elif is_dataclass(node):
                yield node.name, fields(node)


def too_long() -> list[tuple[str, int]]:
    return [
        (f"{file}: {function.name}", lines(function))
        for file in files()
        for function in functions(parsed(file))
        if lines(function) > MOST_LINES_OF_A_FUNCTION
    ]


def too_many_parameters() -> list[tuple[str, int]]:
    return [
        (f"{file}: {name}", number)
        for file in files()
        for name, number in constructors(parsed(file))
        if number > MOST_PARAMETERS
    ]


@pytest.mark.parametrize("file", files())
def test_files_are_short(file: str) -> None:
    assert len((SOURCE / file).read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


def test_functions_are_short() -> None:
    assert too_long() == []


def test_constructors_take_few_parameters() -> None:
    assert too_many_parameters() == []


def test_the_network_asks_no_part_of_what_kind_it_is() -> None:
    text = (SOURCE / "model" / "r2n.py").read_text(encoding="utf-8")
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assert names.count("isinstance") == 0
    assert text.count("pyright: ignore") == 0


def test_there_are_few_public_names() -> None:
    assert len(r2n.__all__) <= MOST_PUBLIC_NAMES


def test_sizes_are_counted_as_a_reader_would() -> None:
    """A docstring of two lines is no code, a decorator is; `self` is no parameter, a constant of a class no field."""
    tree = ast.parse('''
@cache
def f(a):
    """One.

    Two."""
    return (
        a
    )

class C:
    def __init__(self, a, /, b, *more, c=1, **rest): ...

@dataclass(frozen=True)
class D:
    x: int
    y: int = 0
    z: ClassVar[int] = 3
    w: int = field(init=False)

class E(BaseModel):
    x: int
''')
    assert [lines(function) for function in functions(tree)] == [5, 1]
    assert dict(constructors(tree)) == {"C": 5, "D": 2}
