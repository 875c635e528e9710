"""The package itself: names, version, start-up cost, and examples in the documentation that run."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import edgewise
from edgewise._moved import MOVED

ROOT = Path(__file__).parents[2]
HEAVY = ("pandas", "sklearn", "arviz_stats", "xarray", "matplotlib", "networkx", "numba", "scipy")


def fresh(code: str) -> str:
    """Output of some lines of Python in a new process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_version_is_that_of_the_distribution() -> None:
    assert edgewise.__version__ == importlib.metadata.version("edgewise")


def test_the_package_is_typed() -> None:
    assert resources.files("edgewise").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", edgewise.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert name in dir(edgewise)
    assert getattr(edgewise, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = edgewise.nothing  # type: ignore[attr-defined]


def test_importing_costs_next_to_nothing() -> None:
    loaded = fresh("import sys, edgewise; print(*sys.modules)").split()
    assert "edgewise" in loaded
    assert not set(HEAVY) & set(loaded)
    assert "numpy" not in loaded


def test_arrays_need_no_pandas_at_the_door() -> None:
    reading = "from edgewise.data import read_data; read_data([[0, 1], [1, 0], [1, 1]])"
    assert not set(HEAVY) & set(fresh(f"{reading}; import sys; print(*sys.modules)").split())


def test_the_posterior_needs_no_numba() -> None:
    loaded = fresh(
        "import sys, edgewise; edgewise.Posterior, edgewise.load_posterior; print(*sys.modules)"
    ).split()
    assert "edgewise.posterior" in loaded
    assert "numba" not in loaded


def documented() -> list[str]:
    """Every name of the package that the documentation spells out."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    return sorted(set(re.findall(r"(?<![\w./-])edgewise(?:\.[A-Za-z]\w*)+", text)))


def test_the_documentation_names_something() -> None:
    assert {"edgewise.plots", "edgewise.posterior.diagnostics", "edgewise.priors"} <= set(documented())


@pytest.mark.parametrize("name", documented())
def test_every_documented_name_is_there_after_importing_the_package(name: str) -> None:
    assert fresh(f"import edgewise; print({name} is not None)").strip() == "True"


def test_modules_at_old_addresses_warn_and_are_the_same() -> None:
    assert {"edgewise.diagnostics", "edgewise.progress", "edgewise.storage"} <= set(MOVED)
    found = fresh(
        "import importlib, warnings, edgewise._moved as moved\n"
        "for old, new in moved.MOVED.items():\n"
        "    with warnings.catch_warnings(record=True) as caught:\n"
        "        warnings.simplefilter('always')\n"
        "        module = importlib.import_module(old)\n"
        "    told = [str(one.message) for one in caught if one.category is DeprecationWarning]\n"
        "    same = module is importlib.import_module(new)\n"
        "    print(old, same, f'{old} is now {new}.' in told)\n"
    )
    assert found.splitlines() == [f"{old} True True" for old in MOVED]


def test_the_warning_of_an_old_address_points_to_the_import(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os\nfrom edgewise.diagnostics import diagnose\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert f"{script}:2: DeprecationWarning: edgewise.diagnostics is now" in done.stderr


def modules() -> list[str]:
    found = pkgutil.walk_packages(edgewise.__path__, "edgewise.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_the_ten_lines_of_the_readme_run(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    _, code, after = re.split(r"```python\n(.*?)```", readme.read_text("utf-8"), maxsplit=1, flags=re.DOTALL)
    promised = re.search(r"```\n(.*?)```", after, flags=re.DOTALL)
    assert promised is not None
    # In a narrow terminal pandas would leave out columns.
    wide = {**os.environ, "COLUMNS": "200"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=wide)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "posterior.nc").is_file()
    for line in promised.group(1).splitlines()[1:]:
        edge, evidence = re.findall(r"q\d+ -- q\d+|strong \w+", line)
        assert re.search(rf"{edge}.*{evidence}", run.stdout), f"{edge} is no longer shown as {evidence}"


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```\n(edgewise simulate.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 1
    for line in blocks[0].splitlines():
        words = shlex.split(line, comments=True)
        run = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, f"{line}\n{run.stderr}"
        if "summary" in words:
            assert "Quality of the computation: green" in run.stdout
    assert (tmp_path / "network.png").is_file()
    assert (tmp_path / "survey" / "report.html").is_file()
