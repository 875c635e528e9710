"""The ten lines of the README: in a script, a notebook, with an array, with one worker; and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgewise import load_posterior

TESTS = Path(__file__).parents[1]
SEARCHED = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
EDGE = r"(\w+ -- \w+) +[\d.]+ +([a-z ]+?) +-?\d"
WIDE = "import pandas; pandas.set_option('display.width', 200, 'display.max_columns', 20)\n"


def first_code(page):
    """The first block of code on a page."""
    return re.search(r"```python\n(.*?)```", (TESTS.parent / page).read_text("utf-8"), re.DOTALL)[1]


@pytest.fixture(scope="module")
def ten_lines():
    """The first block of code of the README."""
    block = first_code("README.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    assert block.count("SpikeSlabMRF(random_state=1).fit(table)") == 1
    return block


@pytest.fixture(scope="module")
def promised():
    """What the README says the ten lines print: edge and evidence."""
    edges = re.findall(EDGE, (TESTS.parent / "README.md").read_text("utf-8"))
    assert len(edges) == 5
    return edges


def run_script(code, directory):
    return subprocess.run(
        [sys.executable, "-c", WIDE + code],
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        check=False,
    )


def in_array(edge):
    return re.sub(r"q(\d+)", lambda match: f"x{int(match[1]) - 1}", edge)


@pytest.mark.parametrize("variant", ["an array", "one worker"])
def test_the_ten_lines_with(ten_lines, promised, tmp_path, variant):
    if variant == "an array":
        code = ten_lines.replace(".fit(table)", ".fit(rows)").replace('table.head(3), "q1"', 'rows[:3], "x0"')
        promised = [(in_array(edge), evidence) for edge, evidence in promised]
    else:
        code = ten_lines.replace("random_state=1", "random_state=1, n_jobs=1")
    assert code != ten_lines
    done = run_script(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.findall(EDGE, done.stdout) == promised
    assert load_posterior(tmp_path / "posterior.nc").n_chains == 4
    # Without a terminal, plain lines say what happened, and no control characters.
    assert re.search(r"^edgewise: Enough: [\d,]+ draws from each of 4 chains", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr


def test_the_ten_lines_in_a_notebook(ten_lines, promised, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    # Every update of the display is asked for, so that there is one even in a fit of a second.
    hurry = "import edgewise.run.progress; edgewise.run.progress.Display.interval = 0.0"
    first, last = ten_lines.split("\nprint", 1)
    codes = (WIDE + hurry, first, "print" + last, "model")
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in codes]
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    fit, printed, shown = (notebook.cells[k].outputs for k in (1, 2, 3))
    assert re.findall(EDGE, "".join(output.get("text", "") for output in printed)) == promised
    assert any("Enough" in output.get("text", "") for output in fit)
    displays = [output for output in fit if output.output_type == "display_data"]
    assert len(displays) == 1  # one table, replaced in place
    assert "strong presence" in shown[0]["data"]["text/html"]


def test_the_lines_of_the_guide_say_what_the_guide_says(tmp_path):
    code = first_code("docs/guide.md").replace("random_state=0", "random_state=0, progress=False")
    done = run_script(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # progress=False is silent
    found = dict(re.findall(EDGE, done.stdout))
    strong = {"sleep -- mood", "mood -- energy"}
    assert {edge for edge, evidence in found.items() if evidence == "strong presence"} == strong
    assert all("absence" in evidence for edge, evidence in found.items() if edge not in strong)


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
        # In a terminal nobody ignores Ctrl-C, even if whoever started the tests did.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
            "TERM": "xterm",
            "COLUMNS": "120",
        }
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


def test_time_is_written_in_words():
    from edgewise.run.progress import duration

    assert [duration(t) for t in (0.2, 59.4, 200, 7500)] == ["0 s", "59 s", "3 min 20 s", "2 h 5 min"]
