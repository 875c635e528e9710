"""Compiled kernels on disk: never stale, used where they lie, and not needed where there is no place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import edgewise
from edgewise.kernels import cache

CALLED = """
from edgewise.kernels.compiling import kernel

@kernel
def called(x):
    return x + {number}
"""
CALLING = """
from edgewise.kernels.called import called
from edgewise.kernels.compiling import entry

@entry
def calling(x):
    return 10.0 * called(x)
"""
RUN = """
import json
from edgewise.kernels import cache
from edgewise.kernels.called import called
from edgewise.kernels.calling import calling
{before}
result = calling(1.0)
compiled = sum(calling.stats.cache_misses.values()) + len(called.overloads)
print(json.dumps([result, compiled, calling.stats.cache_path]))
"""
READ_ONLY = """
import tempfile
def refused(*arguments, **options):
    raise PermissionError("read-only file system")
tempfile.TemporaryFile = refused
"""


class Package:
    """A package like this one, with two kernels of which one calls the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.kernels = folder / "edgewise" / "kernels"
        self.own_cache = self.kernels / "__pycache__"
        original = Path(edgewise.__file__).parent
        self.kernels.mkdir(parents=True)
        self.home.mkdir()
        (folder / "edgewise" / "__init__.py").write_text("")
        used = ("__init__", "bundles", "cache", "compiling")
        for name in ("_version.py", *(f"kernels/{name}.py" for name in used)):
            shutil.copy(original / name, folder / "edgewise" / name)
        (self.kernels / "calling.py").write_text(CALLING)
        self.edit(1.0)

    def edit(self, number: float) -> None:
        (self.kernels / "called.py").write_text(CALLED.format(number=number))

    def block(self) -> None:
        """Make it impossible to write beside the kernels, even for root."""
        shutil.rmtree(self.own_cache, ignore_errors=True)
        self.own_cache.write_text("")

    def run(self, before: str = "", **environment: str) -> tuple[float, int, Path | None]:
        """The result, the number of functions compiled, and the directory written to."""
        usual = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG"))}
        home = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.home)}
        done = subprocess.run(
            [sys.executable, "-c", RUN.format(before=before)],
            env={**usual, **home, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        result, compiled, path = json.loads(done.stdout)
        return result, compiled, None if path is None else Path(path)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


def code_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_an_edit_of_the_called_kernel_is_seen_by_the_caller(package: Package) -> None:
    assert package.run()[:2] == (20.0, 2)
    assert package.run()[:2] == (20.0, 0)
    package.edit(2.0)
    assert package.run()[:2] == (30.0, 2)
    package.edit(1.0)
    assert package.run()[:2] == (20.0, 0)


def test_code_lies_beside_the_kernels_where_that_can_be_written_to(package: Package) -> None:
    path = package.run()[2]
    assert path is not None
    assert path.parent == package.own_cache
    assert len(code_in(path)) == 1
    assert not list(package.home.iterdir())


def test_code_lies_in_the_home_of_the_user_otherwise(package: Package) -> None:
    package.block()
    path = package.run()[2]
    assert path is not None
    assert path.is_relative_to(package.home)
    assert package.run()[:2] == (20.0, 0)


def test_the_cache_home_can_be_chosen(package: Package, tmp_path: Path) -> None:
    package.block()
    path = package.run(XDG_CACHE_HOME=str(tmp_path / "chosen"))[2]
    if sys.platform == "linux":
        assert path is not None
        assert path.parent == tmp_path / "chosen" / "edgewise"


@pytest.mark.parametrize("home", ["/dev/null/nowhere", ""])
def test_without_any_place_kernels_are_compiled_anew(package: Package, home: str) -> None:
    package.block()
    no_home = {"HOME": home, "XDG_CACHE_HOME": "/dev/null/cache", "LOCALAPPDATA": "/dev/null/cache"}
    assert package.run(**no_home) == (20.0, 2, None)
    assert not (Path.cwd() / "~").exists()


def test_warm_code_in_a_package_that_cannot_be_written_to_is_used(package: Package) -> None:
    assert package.run()[1] == 2
    before = code_in(package.own_cache)
    assert package.run(READ_ONLY, HOME="/dev/null") == (20.0, 0, None)
    assert code_in(package.own_cache) == before


def test_warm_code_stays_warm_when_the_package_is_copied(package: Package, tmp_path: Path) -> None:
    package.run()
    copied = package.folder / "elsewhere"
    shutil.copytree(package.folder / "edgewise", copied / "edgewise", copy_function=shutil.copyfile)
    package.folder = copied
    assert package.run()[:2] == (20.0, 0)


def test_the_directory_of_numba_is_honoured(package: Package, tmp_path: Path) -> None:
    chosen = str(tmp_path / "numba")
    path = package.run(NUMBA_CACHE_DIR=chosen)[2]
    assert path is not None
    assert path.parent == tmp_path / "numba"
    assert package.run(NUMBA_CACHE_DIR=chosen)[1] == 0
    assert not package.own_cache.exists()
    package.run()
    assert package.run(NUMBA_CACHE_DIR=str(tmp_path / "other"))[1] == 2


def test_settings_that_change_the_code_do_not_share_it(package: Package) -> None:
    package.run()
    assert package.run(NUMBA_BOUNDSCHECK="1")[1] == 2


def test_an_edit_while_the_process_runs_neither_finds_nor_leaves_anything(package: Package) -> None:
    package.run()
    there = code_in(package.own_cache)
    changing = (
        f"from pathlib import Path; Path({str(package.kernels / 'calling.py')!r}).write_text('# other')"
    )
    assert package.run(changing)[:2] == (20.0, 2)
    assert code_in(package.own_cache) == there


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_files_are_replaced(package: Package, suffix: str) -> None:
    package.run()
    for path in package.own_cache.rglob(f"*.{suffix}"):
        path.write_bytes(path.read_bytes()[:20])
    assert package.run()[:2] == (20.0, 2)
    assert package.run()[:2] == (20.0, 0)


def test_code_of_another_signature_is_not_taken_for_this_one(package: Package) -> None:
    """Two processes that compile at once may leave an index that points to the data of the other."""
    package.run()
    other = "calling(1)"
    package.run(other)
    by_number: dict[str, list[Path]] = {}
    for path in code_in(package.own_cache):
        by_number.setdefault(path.name.rsplit(".", 2)[0], []).append(path)
    for first, second in by_number.values():
        shutil.copyfile(second, first)
    assert package.run()[:2] == (20.0, 2)


def test_many_processes_at_once(package: Package) -> None:
    command = [sys.executable, "-c", RUN.format(before="")]
    environment = {**os.environ, "PYTHONPATH": str(package.folder), "HOME": str(package.home)}
    environment.pop("NUMBA_CACHE_DIR", None)
    processes: list[Any] = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert json.loads(out)[0] == 20.0
    assert package.run()[:2] == (20.0, 0)


def test_only_the_newest_directories_are_kept(tmp_path: Path) -> None:
    names = [f"edgewise-{number:020x}" for number in range(8)]
    for age, name in enumerate(reversed(names)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f-1.nbi").write_bytes(b"")
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    (tmp_path / "edgewise-mine").mkdir()
    # The one just made is kept whatever its date.
    cache.forget_old(tmp_path / names[0])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [names[0], *names[-cache.KEPT_DIRECTORIES + 1 :], "edgewise-mine"]


def test_a_directory_deleted_under_a_process_is_made_again(package: Package) -> None:
    package.run()
    deleting = f"cache.writable(); import shutil; shutil.rmtree({str(package.own_cache)!r})"
    assert package.run(deleting)[:2] == (20.0, 2)
    assert package.run()[:2] == (20.0, 0)


def test_functions_of_others_are_not_kept() -> None:
    from numba.core.caching import NullCache

    from edgewise.kernels.compiling import entry

    @entry
    def foreign(x):
        return x

    assert isinstance(foreign._cache, NullCache)


def test_every_entry_of_the_package_is_kept_this_way() -> None:
    """And kernels below the entries are not kept at all."""
    import importlib
    import pkgutil

    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    from edgewise import kernels

    found = 0
    for module in pkgutil.iter_modules(kernels.__path__, "edgewise.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher):
                below = value.targetoptions.get("no_cpython_wrapper", False)
                assert isinstance(value._cache, NullCache if below else cache.KernelCache), value
                found += not below
    assert found >= 9
