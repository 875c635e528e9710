"""A posterior on disk: one NetCDF file with the sparse draws, and all that is known of how they were made.

The draws are stored as a ragged array: ``row_size`` is the number of active cliques of each draw, and
``clique_index`` and ``coupling`` list them one draw after the other. Short facts (data digest, seed, engine,
settings, versions) are global attributes for everybody; ``metadata`` holds the complete record as JSON.

This module knows :class:`Contents`, plain arrays and facts; the class around them is in ``posterior.py``.
Files of earlier formats are brought up to the present one by ``formats.py``.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from edgewise._version import __version__
from edgewise.atomic import beside
from edgewise.draws.draws import Draws
from edgewise.errors import DataError, FileError
from edgewise.features import Features, Statistics
from edgewise.posterior.formats import FORMAT_VERSION, UPGRADES, upgrade
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import Prior

FORMAT = "edgewise posterior"
_HDF5_MARK = b"\x89HDF\r\n\x1a\n"
_KEYS_SHOWN = ("engine", "seed", "data_digest", "n_rows", "created", "settings", "versions")
_PACKED: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
# HDF5 keeps an attribute in the 64 kB header of its object.
_LONGEST_ATTRIBUTE = 30_000

Layout = dict[str, tuple[tuple[str, ...], np.ndarray]]


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: the arguments of :class:`~edgewise.Posterior`, under the same names."""

    draws: Sequence[Draws]
    features: Features
    names: Sequence[str]
    levels: Sequence[tuple[Any, Any]]
    statistics: Statistics
    prior: Prior
    info: Mapping[str, Any]
    edge_sums: EdgeSums
    counters: Sequence[Mapping[str, float]]


def write(contents: Contents, path: str | PathLike[str]) -> None:
    """Write a posterior beside its final place and move it there when it is complete."""
    import h5netcdf

    target = Path(path)
    arrays = _arrays(contents)
    metadata = _metadata(contents)
    with _replacing(target) as temporary, h5netcdf.File(temporary, "w") as file:
        for dimensions, values in arrays.values():
            for dimension, size in zip(dimensions, values.shape):
                if dimension not in file.dimensions:
                    file.dimensions[dimension] = size
        for name, (dimensions, values) in arrays.items():
            packed = _PACKED if values.size and values.dtype.kind in "iu" else {}
            variable = file.create_variable(name, dimensions, values.dtype, **packed)
            if values.size:
                variable[...] = values
        file.attrs["title"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        file.attrs["edgewise_version"] = __version__
        file.attrs["checksum"] = _checksum({name: values for name, (_, values) in arrays.items()}, metadata)
        for key in _KEYS_SHOWN:
            value = contents.info.get(key)
            text = value if isinstance(value, str) else json.dumps(value, default=_plain)
            file.attrs[key] = text[:_LONGEST_ATTRIBUTE]
        file.attrs["variables"] = json.dumps(list(contents.names))[:_LONGEST_ATTRIBUTE]


def read(path: str | PathLike[str]) -> Contents:
    """Read a posterior of any format up to the present one; raise FileError with the reason if impossible."""
    source = Path(path)
    _check_kind(source)
    # One layer below NetCDF: on a damaged file it fails cleanly, and it is quicker.
    import h5py

    try:
        with h5py.File(source, "r") as file:
            version = _check_header(source, file.attrs)
            arrays = {name: file[name][...] for name in file if not file[name].is_scale}
            checksum = str(file.attrs["checksum"])
    except FileError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
        raise FileError(
            f"{source} is truncated or damaged and cannot be read ({_first_line(error)}). "
            "Copy it again from where it was written, or run the fit again."
        ) from error
    try:
        metadata = bytes(arrays["metadata"]).decode()
        intact = _checksum(arrays, metadata) == checksum
    except (KeyError, UnicodeDecodeError):
        intact = False
    if not intact:
        raise FileError(
            f"{source} is damaged: its contents do not fit its checksum. "
            "Copy it again from where it was written, or run the fit again."
        )
    try:
        return _contents(*upgrade(version, arrays, json.loads(metadata)))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise FileError(
            f"{source} is a posterior of format {version} but not a consistent one ({_first_line(error)})."
        ) from error


def _arrays(contents: Contents) -> Layout:
    draws = contents.draws
    draw, entry = ("chain", "draw"), ("entry",)
    layout: Layout = {
        "row_size": (draw, np.stack([d.n_edges for d in draws]).astype(np.int32)),
        "clique_index": (entry, np.concatenate([d.indices for d in draws]).astype(np.int32)),
        "coupling": (entry, np.concatenate([d.values for d in draws]).astype(np.float64)),
        "bias": ((*draw, "variable"), np.stack([d.biases for d in draws]).astype(np.float64)),
        "inclusion_rate": (draw, np.stack([d.inclusion_rate for d in draws]).astype(np.float64)),
        "slab_scale": (draw, np.stack([d.slab_scale for d in draws]).astype(np.float64)),
        "data_singles": (("variable",), np.asarray(contents.statistics.singles, np.float64)),
        "data_cliques": (("clique",), np.asarray(contents.statistics.cliques, np.float64)),
    }
    if contents.features.table is not None:
        layout["clique_members"] = (("clique", "place"), contents.features.table.astype(np.int32))
    for key in sorted(contents.edge_sums):
        layout[f"sum_{key}"] = (contents.edge_sums.axes[key], contents.edge_sums[key].astype(np.float64))
    layout["metadata"] = (("byte",), np.frombuffer(_metadata(contents).encode(), np.uint8))
    return layout


def _metadata(contents: Contents) -> str:
    record = {
        "names": list(contents.names),
        "levels": list(contents.levels),
        "prior": contents.prior.to_dict(),
        "n_rows": contents.statistics.n_rows,
        "info": contents.info,
        "edge_sums": {name: contents.edge_sums.axes[name] for name in sorted(contents.edge_sums)},
        "counters": list(contents.counters),
    }
    try:
        return json.dumps(record, default=_plain)
    except TypeError as error:
        raise DataError(f"The posterior's info cannot be written as JSON: {error}.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _contents(arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> Contents:
    size = arrays["row_size"]
    names = record["names"]
    ends = np.concatenate([[0], np.cumsum(size.sum(axis=1))]).astype(int)
    draws = []
    for chain, (start, stop) in enumerate(itertools.pairwise(ends)):
        draws.append(
            Draws(
                np.concatenate([[0], np.cumsum(size[chain])]).astype(np.int64),
                arrays["clique_index"][start:stop],
                arrays["coupling"][start:stop],
                arrays["bias"][chain],
                arrays["inclusion_rate"][chain],
                arrays["slab_scale"][chain],
            )
        )
    axes = {name: tuple(found) for name, found in record["edge_sums"].items()}
    return Contents(
        draws,
        Features(len(names), arrays.get("clique_members")),
        names,
        [(zero, one) for zero, one in record["levels"]],
        Statistics(record["n_rows"], arrays["data_singles"], arrays["data_cliques"]),
        Prior.from_dict(record["prior"]),
        record["info"],
        EdgeSums({name: arrays[f"sum_{name}"] for name in axes}, axes),
        record["counters"],
    )


def _checksum(arrays: Mapping[str, np.ndarray], metadata: str) -> str:
    digest = hashlib.sha256(metadata.encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest.hexdigest()


def _check_kind(source: Path) -> None:
    if source.is_dir():
        raise FileError(f"{source} is a directory; give the file in it, for instance {source}/posterior.nc.")
    try:
        with open(source, "rb") as file:
            start = file.read(len(_HDF5_MARK))
    except FileNotFoundError:
        raise FileError(f"There is no file {source}.") from None
    except OSError as error:
        raise FileError(f"{source} cannot be opened: {error.strerror}.") from error
    if not start:
        raise FileError(f"{source} is empty; the writing was interrupted. Run the fit again.")
    if start != _HDF5_MARK:
        kind = "an older kind of NetCDF (version 3)" if start[:3] == b"CDF" else "not a NetCDF file"
        raise FileError(f"{source} is {kind}; a posterior is written by edgewise, usually as posterior.nc.")


def _check_header(source: Path, attributes: Mapping[str, Any]) -> int:
    if "title" not in attributes or str(attributes["title"]) != FORMAT:
        raise FileError(
            f"{source} is a NetCDF or HDF5 file, but not a posterior written by edgewise "
            f"(its title is {str(attributes['title']) if 'title' in attributes else 'missing'!r})."
        )
    version = int(np.ravel(attributes["format_version"])[0])
    if version > FORMAT_VERSION:
        writer = str(attributes["edgewise_version"]) if "edgewise_version" in attributes else "(unknown)"
        raise FileError(
            f"{source} has format {version} and was written by edgewise {writer}; this is edgewise "
            f"{__version__}, which reads formats 1 to {FORMAT_VERSION}. Open it with that version or a later "
            "one (pip install --upgrade edgewise)."
        )
    if version not in UPGRADES and version != FORMAT_VERSION:
        raise FileError(f"{source} is damaged: it claims format {version}, which edgewise never wrote.")
    return version


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside `target` that takes its place only when everything is on disk."""
    if target.is_dir():
        raise FileError(f"{target} is a directory; give a file name in it, such as {target}/posterior.nc.")
    begun = False
    try:
        with beside(target) as temporary:
            begun = True
            yield temporary
    except OSError as error:
        if not begun:
            raise FileError(f"{target} cannot be written: {error.strerror} ({target.parent}).") from error
        raise FileError(
            f"{target} could not be written completely ({_first_line(error)}); "
            "an earlier file of that name is untouched."
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip("'\"").splitlines() or [type(error).__name__])[0]
