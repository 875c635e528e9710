"""What the command says on standard error, and with which exit code it ends.

0: done. 1: something is wrong with the data, a file or the machine, or the run was interrupted. 2: the
command itself was wrong. Every error is one paragraph; ``--debug`` adds the traceback.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from edgewise.errors import ClusterError, DataError, EdgewiseWarning, FileError, printable

if TYPE_CHECKING:
    from rich.console import Console

DONE, WRONG, MISUSED = 0, 1, 2
# Wider lines are hard to read, and wrap where people paste them.
MOST_COLUMNS = 100
COMMAND = re.compile(r"(?:^\s*|: )edgewise \w")


@dataclass
class Session:
    """One call of the command.

    Attributes
    ----------
    arguments : list of str
        The words after ``edgewise``.
    resume : str
        The command that goes on where this one stops; empty where there is nothing to go on from.
    warnings : list of str
        What was warned of, for ``--json``.
    """

    arguments: list[str] = field(default_factory=list)
    debug: bool = False
    quiet: bool = False
    resume: str = ""
    warnings: list[str] = field(default_factory=list)


session = Session()


class Interrupted(Exception):
    """Ctrl-C, on its way to the end of the command."""


class EdgewiseGroup(TyperGroup):
    """The group of all commands; whatever is raised inside ends here as a paragraph and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run one command and leave with its exit code."""
        arguments = sys.argv[1:] if args is None else [str(argument) for argument in args]
        vars(session).update(vars(Session(arguments)))
        with showing_warnings():
            sys.exit(
                guarded(
                    lambda: super(EdgewiseGroup, self).main(
                        args=arguments,
                        prog_name="edgewise",
                        complete_var=complete_var,
                        standalone_mode=False,
                        **extra,
                    )
                )
            )

    def invoke(self, ctx: Any) -> Any:
        """Run one command; Ctrl-C keeps its message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop)) from stop


def guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code, having said what went wrong."""
    try:
        code = command()
        return code if isinstance(code, int) else DONE
    except Interrupted as stop:
        return fail(str(stop) or "Interrupted.", WRONG, "Stopped")
    except (DataError, FileError, ClusterError) as error:
        return fail(explain(error), WRONG)
    except typer.Abort:
        return fail("Aborted.", WRONG)
    except MemoryError as error:
        return fail(f"The memory of this machine does not suffice ({error}); use fewer variables.", WRONG)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return fail(f"{error.strerror or error}{where}.", WRONG)
    except Exception as error:
        if _is_usage_error(error):
            return fail(_usage(error), MISUSED)
        text = f"{type(error).__name__}: {error}"
        return fail(
            f"This should not have happened: {text}. Run the command again with --debug for the traceback, "
            "and please report it together with the output of: edgewise doctor",
            WRONG,
        )


def fail(text: str, code: int, kind: str = "Error") -> int:
    """Say what went wrong, with the traceback if that was asked for, and return the exit code."""
    if session.debug:
        print(printable(traceback.format_exc()), file=sys.stderr)
    # The chains speak of "the same fit"; on the command line there is a command for it.
    shorter = re.sub(
        r"\.?( and)? [Rr]un the same fit again to go on from (there|the checkpoint)\.", ".", text
    )
    say(shorter, kind)
    if session.resume and (kind == "Stopped" or shorter != text):
        say(f"To go on where it stopped: {session.resume}")
    return code


def _is_usage_error(error: Exception) -> bool:
    # Typer brings Click along in newer versions and imports it in older ones; this finds its base class.
    bases = {base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"}
    return isinstance(error, tuple(bases))


def _usage(error: Any) -> str:
    # Without a parameter to name, "Invalid value:" says nothing.
    bare = isinstance(error, typer.BadParameter) and error.param is None and error.param_hint is None
    text = str(error.message if bare else error.format_message()).strip()
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else "edgewise"
    stop = "" if text.endswith((".", "?", "!")) else "."
    return f"{text}{stop} See: {path} --help"


def error_console() -> Console:
    """Standard error, with colours only where it is a terminal."""
    from edgewise.run.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def say(text: str, kind: str = "") -> None:
    """Write a paragraph to standard error; `kind` is Error, Warning, Note or Stopped."""
    from rich.text import Text

    colour = {"Error": "bold red", "Warning": "bold yellow", "Stopped": "bold yellow", "Note": "bold cyan"}
    out = error_console()
    prefix = f"{kind}: " if kind else ""
    width = min(out.width, MOST_COLUMNS) if out.is_terminal else None
    line = Text(wrapped(prefix + text, width))
    line.stylize(colour.get(kind, "bold"), 0, len(prefix))
    out.print(line)


def wrapped(text: str, width: int | None) -> str:
    """Lines of at most `width` letters, broken between words; commands stay in one piece, to be copied.

    >>> print(wrapped("  1. a column is blank\\n  edgewise fit a.csv --missing drop", 18))
      1. a column is
         blank
      edgewise fit a.csv --missing drop
    """
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        if len(line) <= width or COMMAND.search(line):
            lines.append(line)
            continue
        lead = re.match(r"\s*(\d+\. )?", line)
        indent = " " * (lead.end() if lead else 0)
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


def tell(text: str) -> None:
    """Write a paragraph to standard error unless the user asked for quiet."""
    if not session.quiet:
        say(text)


@contextlib.contextmanager
def showing_warnings() -> Iterator[None]:
    """Show edgewise's warnings as sentences, each once, and keep others for ``--debug``."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **others: Any) -> None:
        if issubclass(category, EdgewiseWarning):
            text = in_options(str(message))
            if text not in session.warnings:
                session.warnings.append(text)
                say(text, "Warning")
        elif session.debug:
            say(f"{category.__name__}: {message}", "Warning")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("always", EdgewiseWarning)
        warnings.showwarning = show
        yield


# From the names of Python to the options of the command

_WORDS = {
    "max_draws": "--max-draws",
    "min_draws": "--draws",
    "max_time": "--max-time",
    "target_ess": "--target-ess",
    "target_error": "--target-error",
    "drop_columns": "--drop-columns",
    "sample_weight": "--weights",
    "n_jobs": "--jobs",
    "checkpoint_every": "--checkpoint-every",
}
_SENTENCES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"extend\(draws=(\d+)\)", lambda found: f"--resume (about {int(found[1]):,} more draws per chain)"),
    (r"extend\(draws=\.\.\.\)", "--resume"),
    (r"FixedInclusion's p0", "--p0"),
    (r"FixedInclusion\(([^)]*)\)", r"--p0 \1"),
    (r"BetaInclusion's a\b", "A of --beta"),
    (r"BetaInclusion's b\b", "B of --beta"),
    (r"GammaSlab's shape", "SHAPE of --slab"),
    (r"GammaSlab's rate", "RATE of --slab"),
    (r"FixedSlab's sigma0", "--sigma0"),
    (r"FixedSlab\(([^)]*)\)", r"--sigma0 \1"),
    (r"CauchySlab\(([^)]*)\)", r"--cauchy \1"),
    (r"StudentSlab\(([^,)]*), ?([^)]*)\)", r"--student \1 \2"),
    (r"NormalBias's sd", "--bias-sd"),
    (r"CauchySlab's scale", "--cauchy"),
    (r"StudentSlab's freedom", "FREEDOM of --student"),
    (r"StudentSlab's scale", "SCALE of --student"),
    (r"BlockInclusion's ([ab])\b", lambda found: f"{found[1].upper()} of --beta"),
    (r"more than max_time=[\d.e+-]+ s allows", "more than --max-time allows"),
    (r"\(max_time=([\d.e+-]+ s)\)", r"(--max-time \1)"),
    (r"\b(missing|constant|engine|coding)='(\w+)'", r"--\1 \2"),
    (r"\b(cut|binarize)='([^']*)'", r"--\1 '\2'"),
    (r"\bfeatures=(\d+)( or a list)?", r"--features \1"),
    (r"\b(group|columns) asks for", r"--\1 asks for"),
    (r", for instance with str\.lower\(\) in pandas", ""),
    (r"give shape=\(height, width\)", "give their rows and columns with --grid, for instance --grid 8x8"),
    (r"give the right shape", "give their rows and columns with --grid"),
)

_OF_A_COLUMN = r"\b(kinds|levels)=(\{'(?:[^'\\]|\\.)*': (?:'[^']*'|\.\.\.|\[[^\]]*\])\})"


def in_options(text: str) -> str:
    """Say in options of the command what a message says in arguments of Python.

    >>> in_options("232 rows would stay with missing='drop'; or use drop_columns=['id', 'a b'].")
    "232 rows would stay with --missing drop; or use --drop-columns 'id,a b'."
    >>> in_options("a slab such as CauchySlab(1.7) or StudentSlab(4, 2.4) or wider")
    'a slab such as --cauchy 1.7 or --student 4 2.4 or wider'
    """
    import ast

    def columns(match: re.Match[str]) -> str:
        try:
            names = ast.literal_eval(match[1])
        except (ValueError, SyntaxError):
            return match[0]
        return f"--drop-columns {shlex.quote(as_list(names))}"

    text = re.sub(r"drop_columns=(\[(?:[^\]'\"]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*\])", columns, text)
    text = re.sub(_OF_A_COLUMN, _said_of_columns, text)
    text = re.sub(r"\bblank=(\[[^\]]*\])", _said_of_blanks, text)
    for pattern, replacement in _SENTENCES:
        text = re.sub(pattern, replacement, text)
    for word, option in _WORDS.items():
        # A column may be called max_time: names stand in quotes and are left alone.
        text = re.sub(rf"(?<!['\w-]){word}(?!['\w])", option, text)
    return text


def _said_of_columns(match: re.Match[str]) -> str:
    """``kinds={...}`` and ``levels={...}`` as options.

    >>> in_options("kinds={'a': 'nominal'} or levels={'b': ['x', 2]}, blank=[-9]")
    '--nominal a or --levels b=x,2, --blank=-9'
    """
    import ast

    name, value = match[2][1:-1].split(": ", 1)
    column = ast.literal_eval(name)
    if match[1] == "kinds":
        kind = "ordinal or --nominal" if value == "..." else ast.literal_eval(value)
        return f"--{kind} {shlex.quote(as_list([column]))}"
    labels = "..." if value == "[...]" else as_list(ast.literal_eval(value))
    return f"--levels {shlex.quote(f'{column}={labels}')}"


def _said_of_blanks(match: re.Match[str]) -> str:
    import ast

    labels = "..." if match[1] == "[...]" else as_list(ast.literal_eval(match[1]))
    return f"--blank={shlex.quote(labels)}"


def as_list(names: Sequence[Any]) -> str:
    """Names as one value of an option, by the rules of CSV."""
    import csv
    import io

    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([str(name) for name in names])
    return line.getvalue()


def explain(error: Exception) -> str:
    """An error in the words of the command line, with the command that gets round it where there is one."""
    remedy: dict[str, Any] = dict(getattr(error, "remedy", {}))
    label = getattr(error, "label", None)
    if label is not None:
        # What labels the rows is worth keeping: the report shows the groups.
        remedy = {"group": label, **remedy}
        remedy["drop_columns"] = [name for name in remedy["drop_columns"] if name != label]
        if not remedy["drop_columns"]:
            del remedy["drop_columns"]
    text = str(error)
    if remedy:
        text = text.partition("\nTo go on without repairing it:")[0]
    text = in_options(text)
    if remedy:
        from edgewise.data.problems import counted

        rows, columns = getattr(error, "rows_left", 0), getattr(error, "columns_left", 0)
        left = f"{counted(rows, 'row')} and {counted(columns, 'column')}"
        text += f"\nTo go on without repairing it (leaves {left}):\n  {remedied(remedy)}"
    return text


def remedied(remedy: Mapping[str, Any]) -> str:
    """The command of this session with the arguments of a remedy in place of its own."""
    options = {f"--{name.replace('_', '-')}": value for name, value in remedy.items()}
    added: list[str] = []
    for option, value in options.items():
        added += [option, value if isinstance(value, str) else as_list(value)]
    return command_line(without=options, add=added)


def command_line(
    *, without: Sequence[str] | Mapping[str, Any] = (), flags: Sequence[str] = (), add: Sequence[str] = ()
) -> str:
    """The command of this session, changed: some options (with their values) and flags less, some more."""
    words: list[str] = []
    arguments = iter(session.arguments)
    for argument in arguments:
        if argument in without:
            next(arguments, None)
        elif argument not in flags and argument.partition("=")[0] not in without:
            words.append(argument)
    return shlex.join(["edgewise", *words, *add])
