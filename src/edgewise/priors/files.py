"""A prior as a file: JSON or TOML, with the parts as :meth:`Prior.to_dict` writes them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from edgewise.errors import DataError, FileError
from edgewise.priors.prior import PARTS, Prior

_OTHERS = ("edge_probability", "edge_probability_kind", "forced", "forbidden", "edge_slab")
_PAIRS = {"edge_probability": '[["a", "b"], 0.9]', "edge_slab": '[["a", "b"], [0.8, 0.3]]'}


def read_prior(path: str | PathLike[str]) -> Prior:
    """Read a prior from a JSON or TOML file; what it leaves out is as in Chen & Welling (2012).

    Parameters
    ----------
    path : path
        For instance ``prior.toml`` with ``[inclusion]``, ``kind = "BlockInclusion"``, ``a = 2``, and
        ``[slab]``, ``kind = "CauchySlab"``. Other entries are ``forced`` and ``forbidden``, lists of cliques;
        ``edge_probability`` and ``edge_slab``, lists of a clique with its value. A table of attributes may be
        a path, from the directory of the file.

    Returns
    -------
    Prior

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "prior.toml")
    >>> _ = path.write_text('[inclusion]\\nkind = "BetaInclusion"\\na = 1\\nb = 9\\n')
    >>> read_prior(path).inclusion
    BetaInclusion(a=1, b=9)
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
        values = tomllib.loads(text) if source.suffix.lower() == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise FileError(f"There is no file {source}.") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise FileError(f"{source} cannot be read as JSON or TOML: {error}.") from None
    if not isinstance(values, Mapping):
        raise FileError(f"{source} holds no prior: it must be a table with inclusion, slab and bias.")
    try:
        return _prior_of(values, source.parent)
    except (DataError, TypeError, ValueError, KeyError) as error:
        raise FileError(f"{source}: {error}") from None


def _prior_of(values: Mapping[str, Any], directory: Path) -> Prior:
    known = (*PARTS, *_OTHERS)
    for name in values:
        if name not in known:
            raise DataError(f"A prior has no {name!r}; it has {', '.join(known)}.")
    parts = {name: _part_of(name, values[name], directory) for name in PARTS if name in values}
    complete = Prior(**parts).to_dict()
    for name in _OTHERS:
        if name in values:
            complete[name] = values[name]
    if values.get("edge_probability") and "edge_probability_kind" not in values:
        complete["edge_probability_kind"] = "mapping"
    for name, example in _PAIRS.items():
        given = complete.get(name)
        matrix = name == "edge_probability" and complete["edge_probability_kind"] == "matrix"
        if given and not matrix and not all(isinstance(one, list) and len(one) == 2 for one in given):
            raise DataError(f"{name} is a list of entries such as {example}.")
    return Prior.from_dict(complete)


def _part_of(name: str, given: Any, directory: Path) -> Any:
    kinds = {kind.__name__: kind for kind in PARTS[name]}
    if not isinstance(given, Mapping) or "kind" not in given:
        raise DataError(f"{name} needs a kind, one of {', '.join(kinds)}.")
    values = dict(given)
    kind = kinds.get(values.pop("kind"))
    if kind is None:
        raise DataError(f"{name} has no kind {given['kind']!r}; its kinds are {', '.join(kinds)}.")
    allowed = [field.name for field in fields(kind)]
    for key in values:
        if key not in allowed:
            raise DataError(f"{kind.__name__} has no {key!r}; it has {', '.join(allowed)}.")
    if isinstance(values.get("table"), str):
        values["table"] = directory / values["table"]
    return kind(**values)
