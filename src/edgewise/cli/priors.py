"""The prior on the command line: options of the commands that take one, and ``edgewise prior``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli import options
from edgewise.cli.files import binary_target
from edgewise.cli.messages import in_options, tell
from edgewise.cli.options import PRIOR
from edgewise.errors import DataError

if TYPE_CHECKING:
    from edgewise.priors import Prior

P0 = Annotated[
    float | None,
    typer.Option(help="Fixed prior probability of each edge.", show_default="learned", rich_help_panel=PRIOR),
]
Beta = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="A B", help="Prior Beta(A, B) of p0.", show_default="5 5", rich_help_panel=PRIOR),
]
Sigma0 = Annotated[
    float | None,
    typer.Option(
        help="Fixed standard deviation of couplings.", show_default="learned", rich_help_panel=PRIOR
    ),
]
Slab = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="SHAPE RATE",
        help="Prior Gamma(SHAPE, RATE) of 1/sigma0^2.",
        show_default="5 5",
        rich_help_panel=PRIOR,
    ),
]
BiasSd = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the biases.", show_default="10", rich_help_panel=PRIOR),
]


def prior(
    variables: Annotated[int, typer.Option("--variables", "-p", min=2, help="Number of variables.")] = 15,
    rows: Annotated[
        float | None,
        typer.Option("--rows", "-n", min=1, help="Say what so many rows could exclude.", show_default=False),
    ] = None,
    p0: P0 = None,
    beta: Beta = None,
    sigma0: Sigma0 = None,
    slab: Slab = None,
    networks: Annotated[int, typer.Option(min=1, max=24, help="Networks to draw.")] = 6,
    seed: options.Seed = None,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: PNG, SVG or PDF by its ending."),
    ] = "prior.png",
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show what a prior expects before it sees data: how many links, how strong, and networks drawn from it.

    [bold]Examples[/bold]

    edgewise prior --variables 15

    edgewise prior --variables 8 --rows 200 --sigma0 2.5 -o wide.png

    edgewise prior -p 100 --beta 1 20 --networks 3
    """
    import matplotlib

    matplotlib.use("Agg")
    from edgewise.cli.shown import console, write_json
    from edgewise.plots import prior_networks
    from edgewise.priors import expect

    chosen = make_prior(p0, beta, sigma0, slab, None)
    target = binary_target(output)
    found = expect(chosen, variables)
    if json:
        write_json(
            {
                "prior": chosen.to_dict(),
                "variables": variables,
                "pairs": found.n_pairs,
                "edges_mean": found.edges.mean(),
                "odds_ratio_median": found.odds_ratio(0.5),
                "odds_ratio_95": found.odds_ratio(0.95),
                "largest_factor_against": None if rows is None else found.reach(rows),
                "words": found.words,
            }
        )
    else:
        out = console()
        for sentence in found.words:
            out.print(sentence)
        if rows is not None:
            out.print(found.words_on_absence(rows))
    axes = prior_networks(chosen, n_variables=variables, n=networks, seed=0 if seed is None else seed)
    target.write_figure(axes[0].get_figure(root=True), 150)
    if not json:
        tell(f"Written: {target}")


def make_prior(
    p0: float | None,
    beta: tuple[float, float] | None,
    sigma0: float | None,
    slab: tuple[float, float] | None,
    bias_sd: float | None,
) -> Prior:
    """The prior of the options; what is not given is as in Chen & Welling (2012)."""
    from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

    for first, second, given in (("--p0", "--beta", (p0, beta)), ("--sigma0", "--slab", (sigma0, slab))):
        if None not in given:
            raise typer.BadParameter(
                f"{first} fixes what {second} would let the data decide; give one of them"
            )
    parts: dict[str, Any] = {}
    try:
        if p0 is not None or beta is not None:
            parts["inclusion"] = FixedInclusion(p0) if p0 is not None else BetaInclusion(*(beta or ()))
        if sigma0 is not None or slab is not None:
            parts["slab"] = FixedSlab(sigma0) if sigma0 is not None else GammaSlab(*(slab or ()))
        if bias_sd is not None:
            parts["bias"] = NormalBias(bias_sd)
    except DataError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    return Prior(**parts)
