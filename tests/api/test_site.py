"""The documentation site: what is run and checked when it is built, on small sites made for the purpose."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "docs" / "_extensions"
CONFIGURATION = f"""
import sys
sys.path.insert(0, {str(EXTENSIONS)!r})
extensions = ["myst_parser", "executed", "generated", "stored", "checked"]
executed_long = ["long"]
"""


@pytest.fixture(autouse=True)
def sphinx() -> None:
    pytest.importorskip("sphinx", reason="pip install '.[docs]' to test the site")
    pytest.importorskip("myst_parser")


def build(where: Path, *options: str, **pages: str) -> tuple[int, str, Path]:
    """Build a site of these pages with warnings as errors: exit code, what was said, and the site."""
    source, site = where / "source", where / "site"
    source.mkdir(exist_ok=True)
    (source / "conf.py").write_text(CONFIGURATION)
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *options, str(source), str(site)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr, site


GOOD = """# A page

<!-- python
secret = 20
-->
```python
print("printed")
secret + 1
```

<!-- fails -->
```python
1 / 0
```

```sh
echo from the shell; ls
```

<!-- not run: needs R -->
```r
library(x)
```

[there](#a-page)
"""


def test_blocks_are_run_in_order_and_their_outputs_shown(tmp_path: Path) -> None:
    code, said, site = build(tmp_path, index=GOOD)
    assert code == 0, said
    page = (site / "index.html").read_text("utf-8")
    text = re.sub(r"<[^>]+>", "", page)
    for shown in (
        "printed",
        "21",
        "ZeroDivisionError: division by zero",
        "from the shell",
        "Not run here: needs R.",
    ):
        assert shown in text, shown
    assert "secret = 20" not in text


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ("```python\nundefined\n```", "a block does not run"),
        ("```sh\nfalse\n```", "a block does not run"),
        ("<!-- python\nassert 1 == 2\n-->", "a block does not run"),
        ("<!-- fails -->\n```python\n1\n```", "should have failed"),
        ("```\nedgewise fit x\n```", "must say what it is"),
        ("```text\nedgewise fit x\n```", "commands of edgewise are run"),
        ("```r\nx\n```", "say why before it"),
        ("- a list\n\n  ```python\n  1\n  ```", "inside a list"),
        ("[nowhere](nowhere.md)", "nowhere.md"),
        ("[no place](#nothing)", "nothing"),
        ('<a href="nothing.html">raw</a>', "links to nothing.html, which is not there"),
        ('<script src="https://cdn.example/x.js"></script>', "from the network"),
        ("<!-- results: nothing -->\n| a |\n|---|\n| 1 |", "stored results: No module named"),
        ("<!-- results: memory -->\n| a |\n|---|\n| 1 |", "the table memory is not what is stored"),
    ],
)
def test_what_is_wrong_with_a_page_fails_the_build(broken: str, complaint: str, tmp_path: Path) -> None:
    code, said, _ = build(tmp_path, index=f"# A page\n\n{broken}\n")
    assert code != 0
    assert complaint in said


def test_the_quick_build_leaves_out_the_code_of_long_pages(tmp_path: Path) -> None:
    pages = {
        "index": "# A page\n\n```{toctree}\nlong\n/late*\n```\n",
        "long": "# Long\n\n```python\n1 / 0\n```\n",
    }
    code, said, site = build(tmp_path, "-t", "quick", **pages)
    assert code == 0, said
    assert "Not run here: this is a quick build" in (site / "long.html").read_text("utf-8")
    assert "a block does not run" in build(tmp_path, "-E", **pages)[1]


def test_every_public_name_is_in_the_reference() -> None:
    sys.path.insert(0, str(EXTENSIONS))
    try:
        from generated import public_names
    finally:
        sys.path.remove(str(EXTENSIONS))
    pages = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    named: set[str] = set()
    for module, chosen in re.findall(r"\{public\} (\S+)([^\n]*)", pages):
        named |= {
            f"{module}.{one}" for one in chosen.split() or public_names(importlib.import_module(module))
        }
    for name in edgewise.__all__:
        value = getattr(edgewise, name)
        if inspect.ismodule(value):
            homes = [one for one in named if one.startswith(f"{value.__name__}.")]
            assert homes or all(f"edgewise.{one}" in named for one in public_names(value)), name
        elif not name.startswith("_"):
            assert f"edgewise.{name}" in named, name


def test_every_public_name_has_an_example() -> None:
    """Examples themselves are run with the docstrings (tests/unit/test_package.py)."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        from generated import public_names
    finally:
        sys.path.remove(str(EXTENSIONS))
    pages = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    without, count = [], 0
    for module, chosen in re.findall(r"\{public\} (\S+)([^\n]*)", pages):
        home = importlib.import_module(module)
        words = chosen.split()
        left = {word[1:] for word in words if word.startswith("-")}
        for name in [word for word in words if not word.startswith("-")] or public_names(home):
            value = getattr(home, name)
            if name not in left and callable(value):
                count += 1
                if ">>> " not in (inspect.getdoc(value) or ""):
                    without.append(f"{module}.{name}")
    assert count > 100
    assert without == []


def test_commands_have_all_their_options_in_the_reference() -> None:
    sys.path.insert(0, str(EXTENSIONS))
    try:
        from generated import commands
    finally:
        sys.path.remove(str(EXTENSIONS))
    text = commands()
    for word in (
        "## edgewise fit",
        "## edgewise reproduce",
        "`--target-error`",
        "`--checkpoint-every` `TIME`",
        "Default: 0.02.",
    ):
        assert word in text, word
