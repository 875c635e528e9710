"""The prior on the command line: options of the commands that take one, and ``edgewise prior``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
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
Cauchy = Annotated[
    float | None,
    typer.Option(
        metavar="SCALE",
        help="Couplings have a Cauchy distribution with this scale.",
        show_default=False,
        rich_help_panel=PRIOR,
    ),
]
Student = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="FREEDOM SCALE",
        help="Couplings have Student's t distribution.",
        show_default=False,
        rich_help_panel=PRIOR,
    ),
]
Communities = Annotated[
    bool,
    typer.Option(
        "--communities",
        help="Variables fall into communities that say how likely edges are (--beta within and between).",
        rich_help_panel=PRIOR,
    ),
]
Attributes = Annotated[
    str | None,
    typer.Option(
        metavar="TERMS",
        help="Attributes of pairs that make edges likely: 'same(subscale) + distance(place)'.",
        show_default=False,
        rich_help_panel=PRIOR,
    ),
]
AttributeTable = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A CSV file with a header: names of the variables, and their attributes.",
        show_default=False,
        rich_help_panel=PRIOR,
    ),
]
PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="FILE",
        help="The whole prior, a JSON or TOML file; options beside it replace parts of it.",
        show_default=False,
        rich_help_panel=PRIOR,
    ),
]
BiasSd = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the biases.", show_default="10", rich_help_panel=PRIOR),
]


def prior(
    variables: Annotated[
        int | None,
        typer.Option(
            "--variables",
            "-p",
            min=2,
            help="Number of variables.",
            show_default="15, or those that the prior names",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Names of the variables, where the prior is about some of them.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        float | None,
        typer.Option("--rows", "-n", min=1, help="Say what so many rows could exclude.", show_default=False),
    ] = None,
    p0: P0 = None,
    beta: Beta = None,
    sigma0: Sigma0 = None,
    slab: Slab = None,
    cauchy: Cauchy = None,
    student: Student = None,
    communities: Communities = False,
    attributes: Attributes = None,
    attribute_table: AttributeTable = None,
    prior_file: PriorFile = None,
    networks: Annotated[int, typer.Option(min=1, max=24, help="Networks to draw.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same one gives the same networks.")] = 0,
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

    edgewise prior --attributes 'same(subscale)' --attribute-table items.csv
    """
    import matplotlib

    matplotlib.use("Agg")
    from edgewise.cli.shown import console, write_json
    from edgewise.plots import prior_networks
    from edgewise.priors import expect

    chosen = make_prior(
        Given(
            p0,
            beta,
            sigma0,
            slab,
            None,
            cauchy,
            student,
            communities,
            attributes,
            attribute_table,
            prior_file,
        )
    )
    target = binary_target(output)
    named = None if names is None else [str(name) for name in options.parse_names([names]) or ()]
    found = expect(chosen, variables, seed, named)
    if json:
        write_json(
            {
                "prior": chosen.to_dict(),
                "variables": found.n_variables,
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
    axes = prior_networks(chosen, n_variables=variables, n=networks, seed=seed, names=named)
    target.write_figure(axes[0].get_figure(root=True), 150)
    if not json:
        tell(f"Written: {target}")


@dataclass(frozen=True)
class Given:
    """What the options say of the prior, in the order in which commands have them."""

    p0: float | None
    beta: tuple[float, float] | None
    sigma0: float | None
    slab: tuple[float, float] | None
    bias_sd: float | None
    cauchy: float | None = None
    student: tuple[float, float] | None = None
    communities: bool = False
    attributes: str | None = None
    attribute_table: Path | None = None
    prior_file: Path | None = None


def make_prior(given: Given) -> Prior:
    """The prior of the options; what is not given is as in the file, or in Chen & Welling (2012)."""
    from edgewise.priors import NormalBias, Prior, read_prior

    base = Prior() if given.prior_file is None else read_prior(given.prior_file)
    _one_of("--p0", given.p0, "--beta", given.beta)
    for name, value in (("--p0", given.p0), ("--attributes", given.attributes)):
        _one_of("--communities", given.communities or None, name, value)
    for name, value in (("--p0", given.p0), ("--beta", given.beta)):
        _one_of("--attributes", given.attributes, name, value)
    slabs = {
        "--sigma0": given.sigma0,
        "--slab": given.slab,
        "--cauchy": given.cauchy,
        "--student": given.student,
    }
    names = list(slabs)
    for k, first in enumerate(names):
        for second in names[k + 1 :]:
            _one_of(first, slabs[first], second, slabs[second])
    if (given.attributes is None) != (given.attribute_table is None):
        raise typer.BadParameter("--attributes and --attribute-table come together")
    parts: dict[str, Any] = {}
    try:
        inclusion, slab = _inclusion(given), _slab(given)
        parts |= {} if inclusion is None else {"inclusion": inclusion}
        parts |= {} if slab is None else {"slab": slab}
        if given.bias_sd is not None:
            parts["bias"] = NormalBias(given.bias_sd)
    except DataError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    return replace(base, **parts)


def _one_of(first: str, one: Any, second: str, other: Any) -> None:
    if one is not None and other is not None:
        fixed = (first, second) in (("--p0", "--beta"), ("--sigma0", "--slab"))
        why = (
            f"fixes what {second} would let the data decide"
            if fixed
            else f"says something else than {second}"
        )
        raise typer.BadParameter(f"{first} {why}; give one of them")


def _inclusion(given: Given) -> Any:
    from edgewise.priors import AttributeInclusion, BetaInclusion, BlockInclusion, FixedInclusion

    if given.attributes is not None:
        return AttributeInclusion(given.attributes, str(given.attribute_table))
    if given.communities:
        return BlockInclusion(*(given.beta or ()))
    if given.p0 is not None:
        return FixedInclusion(given.p0)
    return None if given.beta is None else BetaInclusion(*given.beta)


def _slab(given: Given) -> Any:
    from edgewise.priors import CauchySlab, FixedSlab, GammaSlab, StudentSlab

    if given.cauchy is not None:
        return CauchySlab(given.cauchy)
    if given.student is not None:
        return StudentSlab(*given.student)
    if given.sigma0 is not None:
        return FixedSlab(given.sigma0)
    return None if given.slab is None else GammaSlab(*given.slab)
