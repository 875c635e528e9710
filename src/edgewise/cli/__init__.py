"""The command ``edgewise``: one module per group of commands.

Everything heavy is imported inside the commands, so that ``edgewise --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from edgewise._version import __version__
from edgewise.cli import doctor, fit, look, make, options, priors, reproduce, sensitivity, use
from edgewise.cli.messages import EdgewiseGroup

app = typer.Typer(
    name="edgewise",
    cls=EdgewiseGroup,
    no_args_is_help=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 110},
)


def _show_version(value: bool) -> None:
    if value:
        print(f"edgewise {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def edgewise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: options.Debug = False,
) -> None:
    """Which binary variables depend on each other directly, and how sure can we be?

    [bold]Start here[/bold]

    edgewise demo

    edgewise simulate survey -o survey.csv

    edgewise fit survey.csv --group region --missing drop -o survey
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit()


app.command()(fit.fit)
app.command()(make.demo)
for command in (look.summary, look.plot, look.report, look.compare, sensitivity.sensitivity):
    app.command(rich_help_panel="Look at a posterior")(command)
for command in (use.predict, use.sample, use.export):
    app.command(rich_help_panel="Use a posterior")(command)
app.command(rich_help_panel="Other")(make.simulate)
app.command(rich_help_panel="Other")(priors.prior)
app.command(rich_help_panel="Other")(doctor.doctor)
app.command(rich_help_panel="Other")(reproduce.reproduce)


def main() -> None:
    """Run the command."""
    app(prog_name="edgewise")
