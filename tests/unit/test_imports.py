"""Imports point one way, in the order of the rooms in ARCHITECTURE.md, and never in a circle.

Imports inside functions count. Those under ``if TYPE_CHECKING:`` do not: they never happen.
"""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import edgewise

SOURCE = Path(edgewise.__file__).parent
FILES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def happening(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return []
    return [node, *(found for child in ast.iter_child_nodes(node) for found in happening(child))]


def imported(module: str) -> set[str]:
    names: set[str] = set()
    for node in happening(ast.parse(FILES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute here"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inner & FILES.keys() or {str(node.module)}
    return names & FILES.keys()


ARROWS = {module: imported(module) for module in FILES}


def room(module: str) -> str:
    return FILES[module].relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms() -> dict[str, int]:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
    table = text.partition("| room |")[2].partition("\n\n")[0].splitlines()[2:]
    names = [re.findall(r"`(\w+)", line.split("|")[1]) for line in table]
    return {name: place for place, row in enumerate(names) for name in row}


def test_no_module_imports_itself_by_a_detour() -> None:
    TopologicalSorter(ARROWS).prepare()  # raises CycleError with the modules of the circle


def test_rooms_import_from_rooms_above_them() -> None:
    place = rooms()
    assert place.keys() == {room(module) for module in FILES}
    wrong = [
        f"{module} -> {other}"
        for module, others in ARROWS.items()
        for other in others
        if place[room(other)] >= place[room(module)] and room(other) != room(module)
    ]
    assert not wrong


def test_kernels_import_nothing_but_kernels() -> None:
    assert {room(other) for module in FILES if room(module) == "kernels" for other in ARROWS[module]} == {
        "kernels"
    }
