"""The command as a process of its own: pipes, terminals, Ctrl-C, start-up and completion."""

from __future__ import annotations

import functools
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import FAST, edgewise, table
from edgewise import load_posterior
from edgewise.cli import app, doctor, make
from toy_engine import TOY

TESTS = Path(__file__).parents[1]
SEARCHED = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
EDGEWISE = [sys.executable, "-m", "edgewise"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    "OPENBLAS_NUM_THREADS": "1",
    "NO_COLOR": "",
    "COLUMNS": "100",
}
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def process(
    *arguments: object, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*EDGEWISE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**ENVIRONMENT, **environment},
        timeout=300,
    )


def test_commands_are_joined_by_pipes(tmp_path: Path):
    made = process("simulate", "chain", "-p", "4", "-n", "100", "--seed", "3")
    assert made.returncode == 0
    assert made.stderr == b""
    fitted = process("fit", "-", "-o", tmp_path / "chain", "--json", *FAST, stdin=made.stdout)
    assert fitted.returncode == 0, fitted.stderr
    assert b"\x1b" not in fitted.stdout + fitted.stderr
    answer = json.loads(fitted.stdout)
    assert len(answer["edges"]) == 6
    assert answer["rows"] == len(table(made.stdout.decode()))


def test_a_reader_that_stops_reading_is_no_error(fitted: Path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [*EDGEWISE, "sample", str(fitted), "-n", "20000"],
            stdout=closed,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            timeout=300,
        )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.process, self.handle = pty.fork()
        if self.process == 0:
            # In a terminal nobody ignores Ctrl-C, even if whoever started the tests did.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(
                sys.executable, [*EDGEWISE, *map(str, arguments)], {**ENVIRONMENT, "TERM": "xterm-256color"}
            )
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.output = b""

    def read_until(self, wanted: str | None, seconds: float = 240) -> str:
        """Everything written so far, when `wanted` has been written or the command has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if wanted is not None and wanted in ESCAPE.sub("", self.output.decode(errors="replace")):
                break
            if select.select([self.handle], [], [], 1.0)[0]:
                try:
                    more = os.read(self.handle, 65_536)
                except OSError:
                    break
                if not more:
                    break
                self.output += more
        return ESCAPE.sub("", self.output.decode(errors="replace")).replace("\r\n", "\n")

    def press_control_c(self) -> None:
        os.write(self.handle, b"\x03")

    def end(self) -> tuple[int, str]:
        text = self.read_until(None)
        _, status = os.waitpid(self.process, 0)
        os.close(self.handle)
        return os.waitstatus_to_exitcode(status), text


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("what", ["weights", "edges"])
def test_tables_have_plain_lines_in_a_terminal(what: str, fitted: Path):
    code, text = Terminal("export", what, fitted).end()
    assert code == 0
    assert "\\r" not in text
    assert len(text.strip().split("\n")) > 3


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_control_c_leaves_results_and_resume_goes_on_to_the_same_draws(votes: Path, tmp_path: Path):
    slow = ["--set", "delay=0.004", "--draws", "400", "--max-draws", "400", "--target-ess", "0"]
    common = ["fit", votes, "--group", "party", "--missing", "drop", "--engine", TOY, "--chains", "2"]
    common += ["--seed", "4", *slow]
    terminal = Terminal(*common, "-o", tmp_path / "stopped")
    # The chains are at work once the live table shows draws.
    shown = terminal.read_until("draws each")
    assert "draws each" in shown
    terminal.press_control_c()
    code, text = terminal.end()
    assert code == 1
    assert "Stopped: the files hold what was drawn so far." in text
    assert b"\x1b[" in terminal.output
    command = re.search(r"To go on where it stopped: edgewise (.*)", text)
    assert command is not None
    begun = load_posterior(tmp_path / "stopped" / "posterior.nc")
    assert begun.info["interrupted"]
    assert 4 <= begun.n_draws < 400
    assert (tmp_path / "stopped" / "report.html").exists()
    edgewise(*shlex.split(command[1]), "-q")
    edgewise(*common, "-o", tmp_path / "undisturbed", "-q")
    resumed, whole = (load_posterior(tmp_path / name / "posterior.nc") for name in ("stopped", "undisturbed"))
    assert not resumed.info["interrupted"]
    assert resumed.n_draws == 400
    assert np.array_equal(resumed._joined.values, whole._joined.values)
    assert np.array_equal(resumed._joined.indices, whole._joined.indices)
    assert np.array_equal(begun.draws[0].biases, whole.draws[0].biases[: begun.n_draws])


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_control_c_in_warm_up_writes_a_red_result_and_says_how_to_go_on(votes: Path, tmp_path: Path):
    arguments = ["fit", votes, "--missing", "drop", "--engine", TOY, "-o", tmp_path / "early"]
    terminal = Terminal(*arguments, "--set", "delay=0.05", "--set", "warm_up=100000")
    terminal.read_until("warm-up 0%")
    terminal.press_control_c()
    code, text = terminal.end()
    assert code == 1
    # The terminal breaks long lines where it likes.
    words = " ".join(text.split())
    assert "red, warm-up was not finished" in words
    assert "Stopped: warm-up was not finished; the files show where the chains were." in words
    assert "--resume" in text.replace("\n", "")
    begun = load_posterior(tmp_path / "early" / "posterior.nc")
    assert begun.info["warm_up_unfinished"]
    assert begun.info["stop_reason"] == "interrupted"


def test_help_version_and_errors_import_nothing_heavy():
    script = (
        "import sys\n"
        "from edgewise.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pandas', 'numba', 'sklearn', 'scipy', 'matplotlib', 'xarray', 'h5py'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    for arguments in (["--help"], ["--version"], ["fit", "--help"], ["fit", "--nonsense"], []):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, env=ENVIRONMENT, timeout=60
        )
        assert done.stdout.decode().rstrip().endswith("heavy: []"), arguments


def test_looking_at_a_posterior_does_not_import_numba(fitted: Path, tmp_path: Path):
    script = (
        "import sys\n"
        "from edgewise.cli import app\n"
        "for words in (['summary', sys.argv[1]], ['export', 'edges', sys.argv[1]], "
        "['plot', 'network', sys.argv[1], '-o', sys.argv[2]], ['report', sys.argv[1]]):\n"
        "    try:\n        app(words)\n    except SystemExit as end:\n        assert not end.code\n"
        "print('numba' in sys.modules, 'sklearn' in sys.modules)"
    )
    arguments = [str(fitted), str(tmp_path / "network.png")]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, env=ENVIRONMENT, timeout=120
    )
    assert done.stdout.decode().rstrip().endswith("False False"), done.stderr


def test_shell_completion_offers_commands_kinds_and_options():
    def completed(words: str) -> str:
        done = process(
            _EDGEWISE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)
        )
        return done.stdout.decode()

    assert "summary" in completed("edgewise su")
    assert completed("edgewise plot evid").split() == ["evidence", "evidence-network"]
    assert "--max-time" in completed("edgewise fit --max")


def examples(text: str) -> list[str]:
    """Commands of edgewise in a text, pipes taken apart."""
    found = re.findall(r"(?:^|\||&&)\s*(edgewise [^\n|>&]*)", text, re.MULTILINE)
    return [line.split("  #")[0].strip() for line in found]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_that_parse(name: str):
    text = edgewise(name, "--help").stdout
    assert "Examples" in text
    callback = next(c.callback for c in app.registered_commands if (c.name or c.callback.__name__) == name)
    shown = examples(callback.__doc__)
    assert shown
    for example in shown:
        check_options(example)


@functools.cache
def whole_command() -> Any:
    from typer.main import get_command

    return get_command(app)


def check_options(example: str) -> None:
    words = shlex.split(example)
    command = whole_command()
    if len(words) > 1 and not words[1].startswith("-"):
        command = command.commands[words[1]]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    used = {word.split("=")[0] for word in words[2:] if re.fullmatch(r"--?[a-zA-Z][\w-]*(=.*)?", word)}
    assert used <= known | {"--help"}, (example, used - known)


def test_the_commands_of_the_documentation_parse():
    root = TESTS.parent
    found = [
        example
        for page in ("README.md", "docs/cli.md")
        for example in examples((root / page).read_text("utf-8"))
    ]
    assert len(found) > 20
    for example in found:
        check_options(example)


def test_doctor_tests_the_installation():
    result = edgewise("doctor")
    assert "cores:" in result.stdout
    assert result.stdout.count("  ok ") == 3
    answer = json.loads(edgewise("doctor", "--json").stdout)
    assert answer["packages"]["numpy"] == np.__version__
    assert all(test["passed"] for test in answer["self_test"])


def test_doctor_ends_with_code_1_when_something_is_broken(monkeypatch):
    def broken() -> str:
        raise RuntimeError("log Z is off by 3")

    monkeypatch.setattr(doctor, "TESTS", {"log Z": broken})
    result = edgewise("doctor", code=1)
    assert "FAILED log Z" in result.stdout
    assert "log Z is off by 3" in result.stdout


def test_the_demo_ends_green_and_says_what_it_found(tmp_path: Path):
    done = process("demo", "-o", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert "Quality of the computation: green" in shown
    assert re.search(r"Linked directly to progression.*: triglycerides, body mass and blood pressure", shown)
    assert "sex seems not to matter" in shown
    for name in ("posterior.nc", "edges.csv", "report.html", "network.png"):
        assert (tmp_path / "demo" / name).exists()
    again = edgewise("demo", "-o", tmp_path / "demo", "-q", "--seed", "1")
    assert "Quality of the computation: green" in again.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_the_demo_is_green_with_every_seed(seed: int, tmp_path: Path):
    assert "Quality of the computation: green" in edgewise("demo", "-o", tmp_path, "--seed", seed).stdout


def test_a_demo_that_found_nothing_says_so():
    from types import SimpleNamespace

    rows = np.random.default_rng(1).integers(0, 2, (50, 3))
    nothing: Any = SimpleNamespace(
        names=("a", "b", "c"), inclusion=np.zeros((3, 3)), coupling=lambda: np.zeros((3, 3))
    )
    assert make.told(nothing, rows, "c") == [
        "Nothing is linked directly to c with a probability of 0.9 or more."
    ]


def test_demo_does_not_replace_a_fit(fitted: Path):
    before = (fitted / "posterior.nc").read_bytes()
    assert "holds the results of a fit" in edgewise("demo", "-o", fitted, code=2).stderr
    assert (fitted / "posterior.nc").read_bytes() == before


def test_house_votes_from_file_to_report_in_one_command(real_data: Path, tmp_path: Path):
    import pandas

    votes = pandas.read_csv(real_data / "binary" / "house_votes_84.csv.gz")
    for name in votes.columns.drop("party"):
        votes[name] = votes[name].map({0: "n", 1: "y"})
    path = tmp_path / "house votes.csv"
    votes.to_csv(path, index=False)
    refusal = edgewise("fit", path, "--missing", "error", code=1).stderr
    assert "232 of 435 rows are complete and would stay with --missing drop" in refusal
    brief = ["--draws", "20", "--max-draws", "20", "--chains", "1", "--seed", "1", "--set", "warm_up=20"]
    result = edgewise("fit", path, "--group", "party", "--missing", "drop", "-o", tmp_path / "votes", *brief)
    assert "232 of 435 rows are complete and stay" in result.stderr
    assert "party labels the rows and is not a variable: democrat 124, republican 108." in result.stderr
    assert "text column 'party'" not in result.stderr
    page = (tmp_path / "votes" / "report.html").read_text("utf-8")
    assert "republican" in page
    assert load_posterior(tmp_path / "votes" / "posterior.nc").n_variables == 16


def test_the_refusal_of_the_senate_gives_a_command_that_works(real_data: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = real_data / "binary" / "senate109.csv.gz"
    result = edgewise("fit", path, "--missing", "error", code=1)
    assert "no row is complete, so that --missing drop alone would leave none" in result.stderr
    assert "most in 'CORZINE (D NJ)' (415), 'MENENDEZ (D NJ)' (379)" in result.stderr
    lines = result.stderr.strip().splitlines()
    assert "leaves 160 rows and 99 columns" in lines[-2]
    command = shlex.split(lines[-1])[1:]
    assert command[-1] == "drop"
    brief = ["--draws", "4", "--max-draws", "4", "--chains", "1", "--seed", "1", "--set", "warm_up=4"]
    again = edgewise(*command, *brief)
    assert "160 of 645 rows are complete and stay" in again.stderr
    assert load_posterior("senate109-edgewise/posterior.nc").n_variables == 99
    assert Path("senate109-edgewise/report.html").stat().st_size < 6_000_000
