"""Compiled kernels on disk, and never those of other sources than the ones at hand.

Numba stamps a compiled function with the file it stands in. A kernel calls kernels of other files and holds
their code, so by that stamp it survives an edit of what it calls and returns the old results. Here compiled
code lies in a directory named by everything that it was made from: the contents of all files of this package,
the versions of Python and the compilers, and the settings of Numba that change code. The processor is told
apart within the directory, by Numba's own index.

Directories are looked for in the order NUMBA_CACHE_DIR, ``__pycache__`` beside the kernels, the user's cache.
The first that can be written to is used, and those before it are read, so that code which came with an image
or an installation counts. Where there is none, kernels are compiled anew in every process.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

SOURCES = Path(__file__).resolve().parent
KEPT_DIRECTORIES = 5
DIRECTORY = re.compile(r"edgewise-[0-9a-f]{20}")
SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "USING_SVML")


def on_disk(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator like `decorate`, one of Numba's, whose functions are kept on disk.

    Only functions of this package are: what others call is not known here.
    """

    def decorated(function: Callable[..., Any]) -> Any:
        compiled = decorate(function)
        file = Path(inspect.getfile(function)).resolve()
        # With NUMBA_DISABLE_JIT the function comes back as it is.
        if isinstance(compiled, Dispatcher) and file.is_relative_to(SOURCES) and sources() is not None:
            compiled._cache = KernelCache(function)
        return compiled

    return decorated


@dataclass(frozen=True)
class Sources:
    """What compiled code is made from, as it was when the first kernel was imported."""

    name: str
    seen: dict[Path, tuple[int, int]]

    def unchanged(self) -> bool:
        """Whether the files still are those of the name: code of both must not meet in one directory."""
        try:
            return _files() == self.seen
        except OSError:
            return False


@cache
def sources() -> Sources | None:
    """The sources and the name of their directory; None where they cannot be read, as in a zip archive."""
    try:
        # The files are looked at before they are read, so that an edit in between is seen as a change.
        seen = _files()
        hashed = hashlib.sha256(repr(_circumstances()).encode())
        for path in sorted(seen, key=lambda path: path.relative_to(SOURCES).as_posix()):
            content = path.read_bytes()
            hashed.update(f"\n{path.relative_to(SOURCES).as_posix()} {len(content)}\n".encode())
            hashed.update(content)
        version = SOURCES.parent / "_version.py"
        hashed.update(version.read_bytes() if version.is_file() else b"")
    except OSError:
        return None
    return Sources(f"edgewise-{hashed.hexdigest()[:20]}", seen) if seen else None


def _files() -> dict[Path, tuple[int, int]]:
    found = {path: path.stat() for path in SOURCES.rglob("*.py")}
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found.items()}


def _circumstances() -> list[object]:
    """Everything beside the sources that changes what they are compiled to, but the processor."""
    versions = [numba.__version__, llvmlite.__version__, np.__version__]
    settings = [getattr(config, name, None) for name in SETTINGS]
    interpreter = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""), platform.python_version())
    return [versions, settings, interpreter, sys.platform, platform.machine()]


@cache
def directories() -> tuple[Path, ...]:
    """Where compiled code may lie, in order; there or not, to be written to or not."""
    found, user = sources(), _user_cache()
    if found is None:
        return ()
    bases = [
        Path(config.CACHE_DIR) if config.CACHE_DIR else None,
        SOURCES / "__pycache__",
        None if user is None else user / "edgewise",
    ]
    return tuple(base / found.name for base in bases if base is not None)


def _user_cache() -> Path | None:
    """The directory of this user for things that can be made again; None without a home."""
    if sys.platform == "win32":
        given, usual = "LOCALAPPDATA", "~/AppData/Local"
    elif sys.platform == "darwin":
        given, usual = "", "~/Library/Caches"
    else:
        given, usual = "XDG_CACHE_HOME", "~/.cache"
    for path in (os.environ.get(given, ""), os.path.expanduser(usual)):
        # A home that is not known leaves the ~ where it is.
        if os.path.isabs(path):
            return Path(path)
    return None


@cache
def writable() -> Path | None:
    """The first directory that can be written to, made if need be; None if there is none."""
    for path in directories():
        with contextlib.suppress(OSError):
            new = not path.is_dir()
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
            if new:
                forget_old(path)
            return path
    return None


@cache
def used() -> tuple[Path, ...]:
    """The directories that are read: up to the one that is written to."""
    known, last = directories(), writable()
    return known if last is None else known[: known.index(last) + 1]


@cache
def _mark_as_used(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


def forget_old(newest: Path) -> None:
    """Delete the directories of all sources but the newest few.

    Another process may be using one of them: it compiles what it does not find, and makes the directory anew.
    """
    with contextlib.suppress(OSError):
        others = [
            path for path in newest.parent.iterdir() if path != newest and DIRECTORY.fullmatch(path.name)
        ]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[KEPT_DIRECTORIES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


# The kernels that were not on disk: those that this process compiles itself.
compiled_anew: list[str] = []


class _Locator:
    """What the parts of Numba used here ask of a locator."""

    def __init__(self, file: str) -> None:
        self._py_file = file


class _Reduced(CompileResultCacheImpl):
    """How Numba turns a compiled function into bytes and back, without its search for a place."""

    def __init__(self, function: Any) -> None:
        file = inspect.getfile(function)
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(file)
        module = Path(file).resolve().relative_to(SOURCES).with_suffix("").as_posix().replace("/", ".")
        name = f"{module}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._filename_base = f"{name}-{self._lineno}"


class KernelCache(FunctionCache):
    """The compiled versions of one kernel on disk.

    Every file is written under another name and renamed, and every entry carries its key. So a process that
    loses a race against another finds no entry, never a wrong one. Files that cannot be read or written
    count as absent: a kernel is then compiled, which always works.
    """

    _impl_class = _Reduced

    def __init__(self, function: Any) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl = self._impl_class(function)
        self.enable()

    @property
    def cache_path(self) -> str | None:
        """The directory that is written to."""
        path = writable()
        return None if path is None else str(path)

    def flush(self) -> None:
        """Forget what is on disk and can be forgotten."""
        path = writable()
        if path is not None:
            with contextlib.suppress(OSError):
                self._entries(path).flush()

    def _entries(self, path: Path) -> IndexDataCacheFile:
        return IndexDataCacheFile(str(path), self._impl.filename_base, path.name)

    def _load_overload(self, signature: Any, target_context: Any) -> Any:
        found = self._on_disk(signature, target_context)
        if found is None:
            compiled_anew.append(self._name)
        return found

    def _on_disk(self, signature: Any, target_context: Any) -> Any:
        if not self._enabled or not _is_current():
            return None
        key = self._index_key(signature, target_context.codegen())
        for path in used():
            # A damaged file can fail in any way.
            with contextlib.suppress(Exception):
                found = self._entries(path).load(key)
                if found is not None and found[0] == key:
                    _mark_as_used(path)
                    return self._impl.rebuild(target_context, found[1])
        return None

    def _save_overload(self, signature: Any, compiled: Any) -> None:
        if not self._enabled or _takes_functions(compiled) or not self._impl.check_cachable(compiled):
            return
        path = writable()
        if path is None or not _is_current():
            return
        key = self._index_key(signature, compiled.codegen)
        entry = (key, self._impl.reduce(compiled))
        with contextlib.suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)
            entries = self._entries(path)
            try:
                entries.save(key, entry)
            except OSError:
                raise
            except Exception:
                # The index is damaged.
                entries.flush()
                entries.save(key, entry)


def _is_current() -> bool:
    found = sources()
    return found is not None and found.unchanged()


def _takes_functions(compiled: Any) -> bool:
    """A function as an argument is another one in every process: its entry would never be found again."""
    return any(isinstance(kind, types.Callable) for kind in compiled.signature.args)
