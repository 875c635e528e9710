"""Every equation of docs/method.md is found from the code: its number stands in a docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import edgewise

SOURCE = Path(edgewise.__file__).parent
METHOD = Path(__file__).parents[2] / "docs" / "method.md"


def cited() -> dict[str, list[str]]:
    """Functions, methods and classes whose docstrings cite each equation."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for number in set(re.findall(r"\((\d+\.\d+)\)", ast.get_docstring(node) or "")):
                    found.setdefault(number, []).append(f"{path.relative_to(SOURCE)}:{node.name}")
    return found


@pytest.fixture(scope="module")
def places() -> dict[str, list[str]]:
    return cited()


def test_every_equation_has_its_place(places):
    numbers = re.findall(r"\\tag\{(\d+\.\d+)\}", METHOD.read_text("utf-8"))
    assert len(numbers) == len(set(numbers)) > 30
    for table in ("3.1", "3.2", "3.8"):  # whole modules: the numbers stand at their head
        numbers.remove(table)
    assert not [number for number in numbers if number not in places]


def test_moves_stand_once(places):
    assert places["2.4"] == ["kernels/hyper.py:log_prior_odds"]
    assert places["5.3"] == ["kernels/moves.py:log_birth_factor"]
    assert places["7.1"] == ["kernels/particles.py:log_growth"]
