"""A posterior on disk: one NetCDF file with the sparse draws, and all that is known of how they were made.

The draws are stored as a ragged array: ``row_size`` is the number of active cliques of each draw, and
``clique_index`` and ``coupling`` list them one draw after the other. Where pairs have matrices, ``coupling``
has their strengths, and ``matrix`` their entries in the same order. Short facts (data digest, seed, engine,
settings, versions) are global attributes for everybody; ``metadata`` holds the complete record as JSON.

This module knows :class:`Contents`, plain arrays and facts; the class around them is in ``posterior.py``.
The bytes are read by ``container.py``, those of earlier versions by ``foreign.py``; files of earlier formats
are brought up to the present one by ``formats.py``, and nothing leaves here that ``checks.py`` has not seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from edgewise._version import __version__
from edgewise.atomic import beside
from edgewise.draws.draws import Draws
from edgewise.errors import DataError, FileError
from edgewise.features import Features, Statistics
from edgewise.paths import as_path
from edgewise.posterior import checks, container, foreign
from edgewise.posterior.formats import FORMAT_VERSION, upgrade
from edgewise.posterior.imputed import Imputed
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import Prior
from edgewise.reading import NotAFile, open_file, size_of
from edgewise.scales import Scales

FORMAT = "edgewise posterior"
_HDF5_MARK = b"\x89HDF\r\n\x1a\n"
_SUPERBLOCK = 96
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
    levels: Sequence[tuple[Any, ...]]
    statistics: Statistics
    prior: Prior
    info: Mapping[str, Any]
    edge_sums: EdgeSums
    counters: Sequence[Mapping[str, float]]
    scales: Scales | None = None
    imputed: Imputed | None = None


def write(contents: Contents, path: str | PathLike[str]) -> None:
    """Write a posterior beside its final place and move it there when it is complete.

    What :func:`read` would refuse is not written.
    """
    import h5netcdf

    target = as_path(path, "the file to write")
    arrays = _arrays(contents)
    metadata = bytes(arrays["metadata"][1]).decode()
    plain = {name: values for name, (_, values) in arrays.items()}
    try:
        _contents(plain, json.loads(metadata))
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"The posterior is not a consistent one: {_first_line(error)}.") from error
    header = {"title": FORMAT, "format_version": FORMAT_VERSION, "edgewise_version": __version__}
    with _replacing(target) as temporary:
        with h5netcdf.File(temporary, "w") as file:
            for dimensions, values in arrays.values():
                for dimension, size in zip(dimensions, values.shape):
                    if dimension not in file.dimensions:
                        file.dimensions[dimension] = size
            for name, (dimensions, values) in arrays.items():
                packed: dict[str, Any] = {}
                if values.size and values.dtype.kind in "iu":
                    packed = {**_PACKED, "chunks": container.chunk_shape(values.shape, values.dtype.itemsize)}
                variable = file.create_variable(name, dimensions, values.dtype, **packed)
                if values.size:
                    variable[...] = values
            for key, value in header.items():
                file.attrs[key] = value
            file.attrs["checksum"] = _checksum(plain, metadata)
            for key in _KEYS_SHOWN:
                value = contents.info.get(key)
                text = value if isinstance(value, str) else json.dumps(value, default=_plain)
                file.attrs[key] = text[:_LONGEST_ATTRIBUTE]
            file.attrs["variables"] = json.dumps(list(contents.names))[:_LONGEST_ATTRIBUTE]
        container.add_index(temporary, header)


def read(path: str | PathLike[str]) -> Contents:
    """Read a posterior of any format up to the present one; raise FileError with the reason if impossible."""
    source = as_path(path, "a saved posterior")
    try:
        header, arrays = _open(source)
        version = _check_header(source, header)
        metadata = _metadata_of(arrays)
        if "checksum" in header and _checksum(arrays, metadata) != header["checksum"]:
            raise container.Damaged("its contents do not fit its checksum")
    except (container.Damaged, foreign.Unreadable) as error:
        raise FileError(
            f"{source} is damaged: {_first_line(error)}. "
            "Copy it again from where it was written, or run the fit again."
        ) from error
    try:
        return _contents(*upgrade(version, arrays, json.loads(metadata)))
    except Exception as error:  # nothing is known of a stranger's file but that its bytes are as written
        raise FileError(
            f"{source} is a posterior of format {version} but not a consistent one ({_first_line(error)})."
        ) from error


def _open(source: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays: from the index of the file, or where it has none through HDF5 in another process."""
    with _opened(source) as file:
        size = size_of(file)
        _check_kind(source, file.read(_SUPERBLOCK), size)
        try:
            found = container.read(file, size)
        except OSError as error:
            raise FileError(f"{source} cannot be read: {error.strerror or error}.") from error
        except MemoryError:
            raise FileError(f"{source} does not fit into the memory of this machine.") from None
    if found is not None:
        return found
    header, arrays = foreign.read(source, container.most_bytes(size))
    if "checksum" not in header and header.get("title") == FORMAT:
        raise container.Damaged("it has no checksum")
    return header, arrays


def _metadata_of(arrays: Mapping[str, np.ndarray]) -> str:
    found = arrays.get("metadata")
    if found is None or found.dtype != np.uint8:
        raise container.Damaged("it has no metadata")
    try:
        return found.tobytes().decode()
    except UnicodeDecodeError:
        raise container.Damaged("its metadata are no text") from None


def _arrays(contents: Contents) -> Layout:
    draws = contents.draws
    draw, entry = ("chain", "draw"), ("entry",)
    # With two levels there is one bias per variable and one parameter per candidate.
    single, parameter = ("variable", "clique") if contents.scales is None else ("threshold", "parameter")
    bias = f"stratum_{single}" if "strata" in contents.info else single
    layout: Layout = {
        "row_size": (draw, np.stack([d.n_edges for d in draws]).astype(np.int32)),
        "clique_index": (entry, np.concatenate([d.indices for d in draws]).astype(np.int32)),
        "coupling": (entry, np.concatenate([d.values for d in draws]).astype(np.float64)),
        "bias": ((*draw, bias), np.stack([d.biases for d in draws]).astype(np.float64)),
        "inclusion_rate": (draw, np.stack([d.inclusion_rate for d in draws]).astype(np.float64)),
        "slab_scale": (draw, np.stack([d.slab_scale for d in draws]).astype(np.float64)),
        "data_singles": ((single,), np.asarray(contents.statistics.singles, np.float64)),
        "data_cliques": ((parameter,), np.asarray(contents.statistics.cliques, np.float64)),
    }
    couplings, rates = [d.couplings for d in draws], [d.rates for d in draws]
    if couplings[0] is not None and rates[0] is not None:
        layout["group_coupling"] = (("entry", "group"), np.concatenate(couplings))  # type: ignore[arg-type]
        layout["difference_rates"] = ((*draw, "rate"), np.stack(rates))  # type: ignore[arg-type]
    if draws[0].blocks is not None:
        blocks = [d.blocks for d in draws if d.blocks is not None]
        layout["matrix"] = (("matrix_entry",), np.concatenate(blocks).astype(np.float64))
    states = [d.model_state for d in draws if d.model_state is not None]
    if states:
        layout["model_state"] = ((*draw, "model"), np.stack(states))
    if contents.features.table is not None:
        layout["clique_members"] = (("clique", "place"), contents.features.table.astype(np.int32))
    for key in sorted(contents.edge_sums):
        layout[f"sum_{key}"] = (contents.edge_sums.axes[key], contents.edge_sums[key].astype(np.float64))
    if contents.imputed is not None:
        layout |= contents.imputed.to_arrays()
    layout["metadata"] = (("byte",), np.frombuffer(_metadata(contents).encode(), np.uint8))
    return layout


def _metadata(contents: Contents) -> str:
    scales = None if contents.scales is None else [scale.to_dict() for scale in contents.scales]
    record = {
        "names": list(contents.names),
        "levels": list(contents.levels) if scales is None else [scale["labels"] for scale in scales],
        "scales": scales,
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


def _contents(arrays: Mapping[str, np.ndarray], found: Any) -> Contents:
    record = checks.checked_record(found)
    features = checks.checked_features(arrays, len(record["names"]))
    scales: Scales | None = record["scales"]
    draws = checks.checked_draws(arrays, features, scales, checks.checked_strata(record["info"]))
    prior: Prior = record["prior"]
    checks.check_prior(prior, features, record["names"], draws)
    return Contents(
        draws,
        features,
        record["names"],
        record["levels"],
        checks.checked_statistics(arrays, record["n_rows"], features, scales),
        prior,
        record["info"],
        checks.checked_sums(arrays, record["edge_sums"], len(draws), features),
        record["counters"],
        scales,
        Imputed.checked(arrays, len(draws), features, scales, record["names"], record["levels"]),
    )


def _checksum(arrays: Mapping[str, np.ndarray], metadata: str) -> str:
    digest = hashlib.sha256(metadata.encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest.hexdigest()


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[IO[bytes]]:
    """The file, if it is one."""
    try:
        file = open_file(source)
    except FileNotFoundError:
        raise FileError(f"There is no file {source}.") from None
    except (NotAFile, IsADirectoryError):
        raise FileError(
            f"{source} is a directory; give the file in it, for instance {source}/posterior.nc."
            if source.is_dir()
            else f"{source} is not a file; a posterior cannot be read from a pipe or a device."
        ) from None
    except (OSError, ValueError) as error:
        raise FileError(f"{source} cannot be opened: {getattr(error, 'strerror', None) or error}.") from error
    with file:
        yield file


def _check_kind(source: Path, start: bytes, size: int) -> None:
    if not start:
        raise FileError(f"{source} is empty; the writing was interrupted. Run the fit again.")
    if not start.startswith(_HDF5_MARK):
        kind = "an older kind of NetCDF (version 3)" if start[:3] == b"CDF" else "not a NetCDF file"
        raise FileError(f"{source} is {kind}; a posterior is written by edgewise, usually as posterior.nc.")
    if container.truncated(start, size):
        raise FileError(
            f"{source} is truncated: it has {size:,} bytes and was longer when it was written. "
            "Copy it again from where it was written, or run the fit again."
        )


def _check_header(source: Path, header: Mapping[str, Any]) -> int:
    if header.get("title") != FORMAT:
        raise FileError(
            f"{source} is a NetCDF or HDF5 file, but not a posterior written by edgewise "
            f"(its title is {str(header['title'])[:80] if 'title' in header else 'missing'!r})."
        )
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise FileError(
            f"{source} is damaged: it claims format {str(version)[:40]}, which edgewise never wrote."
        )
    if version > FORMAT_VERSION:
        writer = str(header.get("edgewise_version", "(unknown)"))[:40]
        raise FileError(
            f"{source} has format {version} and was written by edgewise {writer}; this is edgewise "
            f"{__version__}, which reads formats 1 to {FORMAT_VERSION}. Open it with that version or a later "
            "one (pip install --upgrade edgewise)."
        )
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
