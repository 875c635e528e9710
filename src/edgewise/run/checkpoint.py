"""Saving a run so that it survives anything: a directory of small files, each written atomically.

A *generation* holds the state of every chain and the list of *segments*; a segment holds the draws kept
since the generation before. Segments never change once written, so that saving costs as much as is new.
The newest two generations are kept: whenever the machine stops, one of them is whole. They share the older
segments, so that a disk which loses one of those loses the run, and reading it says so. Files are plain
``.npz`` archives without pickles, whose checksums are verified when they are read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.atomic import beside
from edgewise.draws.checks import check_draws
from edgewise.draws.draws import Draws
from edgewise.errors import EdgewiseWarning, FileError
from edgewise.paths import as_path
from edgewise.run import lock
from edgewise.run.archives import NAME, Damaged, check_manifest, load, short
from edgewise.run.lock import Lock

FORMAT = "edgewise checkpoint 1"
_LEFTOVER = re.compile(rf"\.?{NAME.pattern}(\.\w+)?\.part")  # of a save that was killed
_DRAWS = ("indptr", "indices", "values", "biases", "inclusion_rate", "slab_scale")
_OPTIONAL = ("blocks", "block_indptr", "model_state", "couplings", "rates")

State = Mapping[str, np.ndarray]
Sizes = tuple[int | None, int | None, np.ndarray | None]


@dataclass
class StoredChain:
    """One chain as it was saved: its state (None before the first save) and all its draws."""

    state: State | None
    draws: Draws


@dataclass
class Checkpoint:
    """An open checkpoint directory, locked against other runs.

    Attributes
    ----------
    path : Path
        The directory.
    identity : dict
        What makes two runs the same run: data, settings, seed, versions.
    chains : list of StoredChain
        What was found; empty when there was nothing to resume.
    notes : dict
        Small facts saved with the newest generation.
    knowledge : dict of arrays or None
        What the chains of that generation had learned together.
    """

    path: Path
    identity: dict[str, Any]
    chains: list[StoredChain] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    knowledge: dict[str, np.ndarray] | None = None
    _segments: list[dict[str, Any]] = field(default_factory=list)
    _next: int = 0
    _damaged: set[int] = field(default_factory=set)
    _shared: str | None = None
    _lock: Lock | None = None
    _sizes: Sizes = (None, None, None)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        identity: Mapping[str, Any],
        adopt: Sequence[str] = (),
        sizes: Sizes = (None, None, None),
    ) -> Checkpoint:
        """Lock the directory, read what is there and check that it belongs to this run.

        A first generation is written at once when there is none, so that a path that cannot be written is
        found before any work is done. Entries of the identity named in `adopt` (a seed that the user left
        open) are taken from the directory instead of being compared. `sizes` are what the draws have to
        fit: the number of biases, that of candidates, and the number of parameters of each where some have
        several.
        """
        checkpoint = cls(as_path(path, "a directory"), json.loads(json.dumps(identity)))
        checkpoint._sizes = sizes
        try:
            checkpoint.path.mkdir(parents=True, exist_ok=True)
            checkpoint._refuse_strangers()  # before a lock is left among them
            checkpoint._lock = Lock.take(checkpoint.path)
        except OSError as error:
            raise FileError(
                f"The checkpoint {str(path)!r} cannot be written ({error.strerror or error}); "
                "give a directory that can be made and written to."
            ) from error
        try:
            checkpoint._find(adopt)
        except BaseException:
            checkpoint.close()
            raise
        return checkpoint

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def save(self, chains: Sequence[tuple[State, Draws]], notes: Mapping[str, Any]) -> None:
        """Write one generation: the state of each chain and its draws since the last save."""
        number = self._next
        new = [len(draws) for _, draws in chains]
        segments = list(self._segments)
        if any(new):
            arrays = {
                f"chain{c}.{name}": getattr(draws, name)
                for c, (_, draws) in enumerate(chains)
                for name in (*_DRAWS, *_OPTIONAL)
                if getattr(draws, name) is not None
            }
            segments.append({"file": f"draws-{number:08d}.npz", "draws": new})
            self._write(segments[-1]["file"], arrays)
        self._write_generation(number, segments, [state for state, _ in chains], notes)
        self._segments = segments
        self._next = number + 1
        self._tidy(number)

    def share(self, knowledge: State) -> None:
        """Write what the chains know together from now on; the next generation refers to it."""
        number = self._next
        self._write(f"shared-{number:08d}.npz", knowledge)
        self._shared = f"shared-{number:08d}.npz"
        self._next = number + 1

    def _write_generation(
        self,
        number: int,
        segments: Sequence[Mapping[str, Any]],
        states: Sequence[State],
        notes: Mapping[str, Any],
    ) -> None:
        arrays: dict[str, np.ndarray] = {}
        for c, state in enumerate(states):
            arrays.update({f"chain{c}.{key}": np.asarray(value) for key, value in state.items()})
        manifest = {
            "format": FORMAT,
            "identity": self.identity,
            "notes": dict(notes),
            "segments": list(segments),
            "shared": self._shared,
            "chains": len(states),
            "arrays": sorted(arrays),
            "saved": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
        self._write(f"generation-{number:08d}.npz", arrays)

    def _write(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write one file so that it is there completely or not at all."""
        try:
            with beside(self.path / name) as draft, open(draft, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            kept = (
                f"What was saved before ({_amount(self._segments)}) is intact: make room and run the "
                "same fit again to go on from there."
                if self._next > 0
                else "Nothing was saved yet."
            )
            raise FileError(
                f"The checkpoint {str(self.path)!r} cannot be written ({error.strerror or error}). {kept}"
            ) from error

    def _tidy(self, newest: int) -> None:
        """Remove all but the newest two whole generations and what neither of them needs."""
        generations = sorted(
            n for kind, n in self._numbered() if kind == "generation" and n not in self._damaged
        )
        keep = set(generations[-2:])
        wanted = {segment["file"] for segment in self._segments}
        # A generation refers to the newest shared file before it.
        shared = sorted(n for kind, n in self._numbered() if kind == "shared")
        first = min(keep, default=0)
        in_use = {n for n in shared if n > first} | set([n for n in shared if n < first][-1:])
        for kind, number in self._numbered():
            name = f"{kind}-{number:08d}.npz"
            if kind == "shared":
                old = number not in in_use
            else:
                old = number not in keep if kind == "generation" else name not in wanted and number <= newest
            if old:
                with contextlib.suppress(OSError):
                    (self.path / name).unlink()

    def _numbered(self) -> list[tuple[str, int]]:
        found = (NAME.fullmatch(entry.name) for entry in self.path.iterdir())
        return [(match[1], int(match[2])) for match in found if match]

    def _refuse_strangers(self) -> None:
        for entry in self.path.iterdir():
            if not belongs(entry.name):
                raise FileError(
                    f"The directory {str(self.path)!r} holds other files ({entry.name!r}); give the "
                    "checkpoint a directory of its own."
                )

    def _find(self, adopt: Sequence[str]) -> None:
        self._refuse_strangers()
        for entry in self.path.iterdir():
            if _LEFTOVER.fullmatch(entry.name):
                entry.unlink(missing_ok=True)
        numbered = self._numbered()
        generations = sorted((n for kind, n in numbered if kind == "generation"), reverse=True)
        self._next = max((n for _, n in numbered), default=-1) + 1
        if not generations:
            self._write_generation(self._next, [], [], {})
            self._next += 1
            return
        damages = []
        for number in generations:
            name = f"generation-{number:08d}.npz"
            try:
                self._read(name, adopt)
            except Damaged as damage:
                damages.append(str(damage))
                self._damaged.add(number)
                continue
            if damages:
                warnings.warn(
                    f"The newest generation of the checkpoint {str(self.path)!r} is damaged ({damages[0]}); "
                    f"going on from the one before, with {_amount(self._segments)}.",
                    EdgewiseWarning,
                    stacklevel=2,
                )
            return
        raise FileError(
            f"The checkpoint {str(self.path)!r} is damaged ({damages[0]}) and no whole generation is left; "
            "delete the directory to start anew."
        )

    def _read(self, name: str, adopt: Sequence[str]) -> None:
        arrays = load(self.path / name)
        try:
            manifest = json.loads(arrays.pop("manifest").tobytes())
            found = manifest["format"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(f"{name}: {error}") from None
        if found != FORMAT:
            raise FileError(
                f"The checkpoint {str(self.path)!r} has the format {short(found)!r} and this version reads "
                f"{FORMAT!r}; finish it with the version that wrote it, or give another directory."
            )
        try:
            check_manifest(manifest)
            self._compare(manifest["identity"], adopt)
        except FileError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(f"{name}: its manifest makes no sense, {error}") from None
        # One byte of its table of contents may hide the rest of an archive.
        lost = [key for key in manifest.get("arrays", []) if key not in arrays]
        if lost:
            raise Damaged(f"{name}: {lost[0]!r} is missing")
        pieces: list[list[Draws]] = [[] for _ in range(manifest["chains"])]
        for segment in manifest["segments"]:
            for chain, draws in zip(pieces, self._read_segment(segment)):
                chain.append(draws)
        chains = []
        for c in range(manifest["chains"]):
            prefix = f"chain{c}."
            state = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            draws = Draws.concatenate(pieces[c]) if pieces[c] else Draws.empty(0)
            chains.append(StoredChain(state or None, draws))
        shared = manifest.get("shared")
        if shared is not None and not (isinstance(shared, str) and NAME.fullmatch(shared)):
            raise Damaged(f"{name}: {shared!r} is no file of a checkpoint")
        self._shared = shared
        self.knowledge = None if shared is None else load(self.path / shared)
        self.chains = chains
        self.notes = manifest["notes"]
        self.identity.update({key: manifest["identity"].get(key) for key in adopt})
        self._segments = manifest["segments"]

    def _read_segment(self, segment: Mapping[str, Any]) -> list[Draws]:
        name = segment["file"]
        stored = load(self.path / name)
        found = []
        for c, count in enumerate(segment["draws"]):
            try:
                draws = Draws(
                    *(stored[f"chain{c}.{part}"] for part in _DRAWS),
                    *(stored.get(f"chain{c}.{part}") for part in _OPTIONAL),
                )
                check_draws(draws, *self._sizes)
            except KeyError as error:
                raise Damaged(f"{name}: {error} is missing") from None
            except ValueError as error:
                raise Damaged(f"{name}: {error}") from None
            if len(draws) != count:
                raise Damaged(f"{name}: {len(draws)} draws instead of {count}")
            found.append(draws)
        return found

    def _compare(self, found: Mapping[str, Any], adopt: Sequence[str]) -> None:
        theirs, ours = _flatten(found), _flatten(self.identity)
        ours.update({key: theirs.get(key) for key in adopt})
        differences = [
            f"  {key}: {short(theirs.get(key))} in the checkpoint, {short(ours.get(key))} now"
            for key in sorted(theirs.keys() | ours.keys())
            if theirs.get(key) != ours.get(key)
        ]
        if differences:
            raise FileError(
                f"The checkpoint {str(self.path)!r} belongs to another fit:\n"
                + "\n".join(differences)
                + "\nFit with what it was made with to continue it, or give another directory."
            )


def belongs(name: str) -> bool:
    """Whether a file of this name may be part of a checkpoint."""
    return name == lock.NAME or any(pattern.fullmatch(name) for pattern in (NAME, _LEFTOVER))


def _ours_alone(path: Path) -> bool:
    return all(belongs(entry.name) for entry in path.iterdir())


def forget(path: Path) -> None:
    """Delete what a checkpoint holds, unless a fit is using it; a directory with other files is left alone.

    The lock stays, so that whoever waits for it and whoever comes later mean the same file.
    """
    try:
        if not _ours_alone(path):
            return
        held = Lock.take(path)
        try:
            if _ours_alone(path):
                for entry in path.iterdir():
                    if entry.name != lock.NAME:
                        entry.unlink()
        finally:
            held.release()
    except OSError as error:
        raise FileError(
            f"The checkpoint {str(path)!r} cannot be deleted ({error.strerror or error}); give another "
            "directory."
        ) from error


def _amount(segments: Sequence[Mapping[str, Any]]) -> str:
    totals = [sum(counts) for counts in zip(*(segment["draws"] for segment in segments))]
    return f"{min(totals):,} draws per chain" if totals else "no draws yet"


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            flat.update(_flatten(item, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = item
    return flat
