"""The ten lines of the guide: in a script, a notebook, with an array, with one worker, and under Ctrl-C."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
GUIDE = TESTS.parent / "docs" / "guide.md"


@pytest.fixture(scope="module")
def ten_lines():
    """The first block of code of the guide."""
    block = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]
    assert len([line for line in block.splitlines() if line.strip()]) <= 11
    assert block.count("SpikeSlabMRF(random_state=0).fit(table)") == 1
    return block


def run_script(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        check=False,
    )


def edges(output):
    """Edge -> evidence of a printed summary."""
    return dict(re.findall(r"(\w+ -- \w+)\s+[\d.]+\s+([a-z ]+?)\s+-?\d", output))


def check(output, names):
    found = edges(output)
    assert len(found) == 6
    assert found[f"{names[0]} -- {names[1]}"] == "strong presence"
    assert found[f"{names[1]} -- {names[2]}"] == "strong presence"
    assert all(
        "presence" not in evidence
        for edge, evidence in found.items()
        if edge not in (f"{names[0]} -- {names[1]}", f"{names[1]} -- {names[2]}")
    )


VARIANTS = {
    "a script": (".fit(table)", ".fit(table)", ("sleep", "mood", "energy")),
    "an array": (".fit(table)", ".fit(table.to_numpy())", ("x0", "x1", "x2")),
    "one worker": ("random_state=0", "random_state=0, n_jobs=1", ("sleep", "mood", "energy")),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ten_lines_in(ten_lines, variant):
    old, new, names = VARIANTS[variant]
    wide = "import pandas; pandas.set_option('display.width', 200, 'display.max_columns', 20)\n"
    done = run_script(wide + ten_lines.replace(old, new))
    assert done.returncode == 0, done.stderr
    check(done.stdout, names)
    # Without a terminal, plain lines say what happened, and no control characters.
    assert re.search(r"^edgewise: Enough: [\d,]+ draws from each of 4 chains", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr


def test_the_ten_lines_in_a_notebook(ten_lines):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    # Every update of the display is asked for, so that there is one even in a fit of a second.
    hurry = "import edgewise.progress; edgewise.progress.Display.interval = 0.0"
    wide = "pd.set_option('display.width', 200, 'display.max_columns', 20)"
    body, last = ten_lines.strip().rsplit("\n", 1)
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in (hurry, body, wide, last, "model")]
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    fit, printed, shown = (notebook.cells[k].outputs for k in (1, 3, 4))
    check("".join(output.get("text", "") for output in printed), ("sleep", "mood", "energy"))
    assert any("Enough" in output.get("text", "") for output in fit)
    displays = [output for output in fit if output.output_type == "display_data"]
    assert len(displays) == 1  # one table, replaced in place
    assert "strong presence" in shown[0]["data"]["text/html"]


TERMINAL = """
from toy_engine import TOY, toy_rows
from edgewise import SpikeSlabMRF
model = SpikeSlabMRF(TOY, settings={"delay": 0.001}, target_ess=None, max_draws=10**6, max_time=120)
model.fit(toy_rows())
print("reason", model.stop_reason_, "marked", model.posterior_.info["interrupted"])
print(len(model.summary()), "edges")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_ctrl_c_in_a_terminal():
    import pty

    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "TERM": "xterm", "COLUMNS": "120"}
        os.execve(sys.executable, [sys.executable, "-c", TERMINAL], environment)
    output = ""
    pressed = False
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the terminal is closed when its last process ends
            break
        if not part:
            break
        output += re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", part.decode(errors="replace"))
        # Two redraws after warm-up, so that the table is known to be live; then the key itself.
        if not pressed and len(re.findall(r"[\d,]+ draws each", output)) >= 2:
            os.write(terminal, b"\x03")
            pressed = True
    _, status = os.waitpid(child, 0)
    assert pressed, output
    assert os.waitstatus_to_exitcode(status) == 0, output
    assert "Traceback" not in output
    assert re.search(r"Interrupted: the result has the [\d,]+ draws from each of 4 chains", output)
    assert "reason interrupted marked True" in output
    assert "6 edges" in output
    assert "acceptance" in output  # the table was there


def test_silence(ten_lines):
    done = run_script(ten_lines.replace("random_state=0", "random_state=0, progress=False"))
    assert done.returncode == 0
    assert done.stderr == ""


def test_time_is_written_in_words():
    from edgewise.progress import duration

    assert [duration(t) for t in (0.2, 59.4, 200, 7500)] == ["0 s", "59 s", "3 min 20 s", "2 h 5 min"]
