"""What is shipped and what is required: the sources hold what README links, and need what they import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import edgewise

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SHIPPED = [
    entry.removeprefix("/") for entry in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
]
# What brings a module that is not installed under its own name.
BROUGHT_BY = {
    **{"sklearn": "scikit-learn", "joblib": "scikit-learn"},
    **{"llvmlite": "numba", "PIL": "matplotlib", "h5py": "h5netcdf"},
}
# Asked for only where they are there already: frames and clusters of the user.
GUESTS = {"polars", "IPython", "dask", "distributed"}


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", text) for text in requirements)
    return {name.group().lower().replace("_", "-") for name in found if name}


def imported() -> dict[str, Path]:
    """Top-level names that the package imports from elsewhere, each with a file that does."""
    found: dict[str, Path] = {}
    for path in Path(edgewise.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            found.update({module.split(".")[0]: path for module in modules})
    outside = found.keys() - sys.stdlib_module_names - {"edgewise"}
    return {BROUGHT_BY.get(name, name.replace("_", "-")): found[name] for name in outside}


def test_what_is_imported_is_required_and_what_is_required_is_imported() -> None:
    required = names(PROJECT["project"]["dependencies"])
    optional = names([text for key in ("parquet", "mnist") for text in extra(key)])
    used = imported()
    asked = set(used) - GUESTS
    assert asked <= required | optional, {name: used[name] for name in asked - required - optional}
    assert required <= set(used)


def extra(name: str) -> list[str]:
    return PROJECT["project"]["optional-dependencies"][name]


def test_the_tests_have_the_extras() -> None:
    assert names(extra("parquet")) | names(extra("mnist")) <= names(extra("test"))


def test_numba_is_bounded_above() -> None:
    (numba,) = (text for text in PROJECT["project"]["dependencies"] if text.startswith("numba"))
    assert "<" in numba


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_a_page_links_is_there_and_shipped(page: str) -> None:
    linked = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text("utf-8"))
    here = [link for link in linked if not re.match(r"\w+:", link)]
    assert here
    for link in here:
        assert (ROOT / link).exists(), link
        assert any(link == entry or link.startswith(f"{entry}/") for entry in SHIPPED), link


def test_everything_under_version_control_is_shipped() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout")
    left = {
        path for path in listed.stdout.split() if not path.startswith(tuple(f"{entry}/" for entry in SHIPPED))
    }
    assert left - set(SHIPPED) <= {".gitignore", "pyproject.toml"}
