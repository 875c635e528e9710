"""Checkpoints: whatever happens, the run goes on to the very draws it would have made."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from edgewise.draws import Draws
from edgewise.errors import EdgewiseWarning, FileError
from edgewise.run import checkpoint as checkpoint_module
from edgewise.run.chains import run
from edgewise.run.checkpoint import Checkpoint
from edgewise.run.options import RunOptions
from toy_engine import TOY, fingerprint, toy_problem

TESTS = Path(__file__).parents[1]
SEARCHED = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])


def short_run(path=None, *, identity=None, previous=None, **options):
    defaults = {
        "chains": 2, "min_draws": 60, "max_draws": 60, "target_ess": None, "seed": 7, "progress": False,
        "checkpoint_every": 0,
    }  # fmt: skip
    return run(
        toy_problem(),
        RunOptions(engine=TOY, checkpoint=path, **{**defaults, **options}),
        identity=identity,
        previous=previous,
    )


@pytest.fixture(scope="module")
def reference():
    return fingerprint(short_run().draws)


def part_way(path, draws=20, **options):
    """A checkpoint that ends in the middle of the run."""
    return short_run(path, min_draws=draws, max_draws=draws, **options)


def test_a_checkpoint_changes_no_draw(tmp_path, reference):
    assert fingerprint(short_run(tmp_path / "c").draws) == reference


def test_a_run_continues_from_its_checkpoint(tmp_path, reference):
    part_way(tmp_path / "c")
    result = short_run(tmp_path / "c")
    assert result.info["resumed_from_iteration"] == 40
    assert fingerprint(result.draws) == reference


def test_a_finished_run_is_read_rather_than_repeated(tmp_path, reference):
    short_run(tmp_path / "c")
    again = short_run(tmp_path / "c", settings={})
    assert again.info["resumed_from_iteration"] == 80
    assert fingerprint(again.draws) == reference


def test_fewer_draws_than_saved_are_the_first_ones(tmp_path):
    short_run(tmp_path / "c")
    assert fingerprint(part_way(tmp_path / "c").draws) == fingerprint(part_way(None).draws)


def test_a_seed_left_open_is_taken_from_the_checkpoint(tmp_path, reference):
    part_way(tmp_path / "c")
    result = short_run(tmp_path / "c", seed=None)
    assert result.info["seed"] == 7
    assert fingerprint(result.draws) == reference


def test_the_run_in_memory_wins_where_it_is_further_on(tmp_path, reference):
    part_way(tmp_path / "c", draws=10)
    in_memory = part_way(None, draws=30)
    result = short_run(tmp_path / "c", previous=in_memory)
    assert result.info["resumed_from_iteration"] == 50
    assert fingerprint(result.draws) == reference
    assert fingerprint(short_run(tmp_path / "c").draws) == reference


def test_saving_costs_as_much_as_is_new_and_two_generations_stay(tmp_path):
    path = tmp_path / "c"
    part_way(path, draws=20)
    before = {file.name: file.read_bytes() for file in path.glob("draws-*.npz")}
    short_run(path)
    after = {file.name: file.read_bytes() for file in path.glob("draws-*.npz")}
    assert before.items() <= after.items()
    assert len(list(path.glob("generation-*.npz"))) == 2
    stored = 0
    for name in after:
        with np.load(path / name, allow_pickle=False) as archive:
            stored += len(archive["chain0.indptr"]) - 1
    assert stored == 60


# What differs is named.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 8}, "seed: 7 in the checkpoint, 8 now"),
        ({"chains": 3}, "chains: 2 in the checkpoint, 3 now"),
        ({"settings": {"warm_up": 21}}, "settings.warm_up: nothing in the checkpoint, 21 now"),
        ({"thin": 2}, "thin: auto in the checkpoint, 2 now"),
        ({"start": "full"}, "start: "),
        ({"identity": {"data": "abc"}}, "data: nothing in the checkpoint, abc now"),
    ],
)
def test_another_fit_is_refused_with_the_difference(tmp_path, options, message):
    part_way(tmp_path / "c")
    with pytest.raises(FileError, match="belongs to another fit") as caught:
        short_run(tmp_path / "c", **options)
    assert message in str(caught.value)


def test_other_data_and_versions_are_refused(tmp_path, monkeypatch):
    part_way(tmp_path / "c")
    options = RunOptions(engine=TOY, chains=2, seed=7, progress=False, checkpoint=tmp_path / "c")
    with pytest.raises(FileError, match=r"problem: \w+"):
        run(toy_problem(seed=1), options)
    monkeypatch.setattr(np, "__version__", "1.0")
    with pytest.raises(FileError, match=r"versions.numpy: \S+ in the checkpoint, 1.0 now"):
        short_run(tmp_path / "c")


def test_a_second_fit_on_the_same_checkpoint_is_refused(tmp_path):
    first = Checkpoint.open(tmp_path / "c", {"a": 1})
    with pytest.raises(FileError, match=rf"in use by another fit \(process {os.getpid()}\)"):
        Checkpoint.open(tmp_path / "c", {"a": 1})
    first.close()
    Checkpoint.open(tmp_path / "c", {"a": 1}).close()


HOLDER = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from edgewise.run.checkpoint import Checkpoint
store = Checkpoint.open(sys.argv[1], {"a": 1})
pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
for nap in [pool.submit(time.sleep, 0.3) for _ in range(2)]:  # until both workers are at work
    nap.result()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_workers_that_outlive_a_killed_fit_do_not_hold_its_checkpoint(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "c")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    try:
        assert holder.stdout.readline() == b"ready\n"
        with pytest.raises(FileError, match=rf"in use by another fit \(process {holder.pid}\)"):
            Checkpoint.open(tmp_path / "c", {"a": 1})
        holder.kill()
        holder.wait()
        os.killpg(holder.pid, 0)  # its workers are still there
        Checkpoint.open(tmp_path / "c", {"a": 1}).close()
    finally:
        holder.stdout.close()
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_frees_the_lock_nor_closes_a_file_of_its_own(tmp_path):
    store = Checkpoint.open(tmp_path / "c", {})
    child = os.fork()
    if child == 0:
        handle = os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR)  # gets the number of the closed lock
        store.close()
        os._exit(0 if os.write(handle, b"x") == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(FileError, match="in use by another fit"):
        Checkpoint.open(tmp_path / "c", {})
    store.close()
    Checkpoint.open(tmp_path / "c", {}).close()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links")
def test_a_lock_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path):
    (tmp_path / "c").mkdir()
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    for target in (thesis, tmp_path / "new"):
        (tmp_path / "c" / "lock").symlink_to(target)
        with pytest.raises(FileError, match=r"c/lock' is a link to '.*'; delete it"):
            Checkpoint.open(tmp_path / "c", {})
        (tmp_path / "c" / "lock").unlink()
    assert thesis.read_text("utf-8") == "years of work"
    assert not (tmp_path / "new").exists()
    os.mkfifo(tmp_path / "c" / "lock")
    with pytest.raises(FileError, match="is not a file; delete it"):
        Checkpoint.open(tmp_path / "c", {})


def test_whatever_the_lock_says_its_holder_is_respected(tmp_path):
    first = Checkpoint.open(tmp_path / "c", {})
    (tmp_path / "c" / "lock").write_bytes(b"\xff\x1b")
    with pytest.raises(FileError, match=r"in use by another fit \(process unknown\)"):
        Checkpoint.open(tmp_path / "c", {})
    first.close()


# Damage.


def newest(path, kind="generation"):
    return max(path.glob(f"{kind}-*.npz"))


def truncate(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, Path.unlink, lambda file: file.write_bytes(b"")])
@pytest.mark.parametrize("kind", ["generation", "draws"])
def test_a_damaged_generation_gives_way_to_the_one_before(tmp_path, reference, damage, kind):
    path = tmp_path / "c"
    part_way(path, draws=20)
    part_way(path, draws=30, checkpoint_every=1000)  # one save, so that the newest draws are its alone
    damage(newest(path, kind))
    if damage is Path.unlink and kind == "generation":
        result = short_run(path)  # nothing tells that there was a newer one
    else:
        with pytest.warns(EdgewiseWarning, match="going on from the one before"):
            result = short_run(path)
    assert 20 < result.info["resumed_from_iteration"] <= 50
    assert fingerprint(result.draws) == reference


def content_of(path):
    """Digest of everything that a run would go on from."""
    store = Checkpoint.open(path, json.loads((path.parent / "identity.json").read_text("utf-8")))
    store.close()
    states = [
        {key: (value.dtype.str, value.shape, value.tobytes()) for key, value in (chain.state or {}).items()}
        for chain in store.chains
    ]
    return fingerprint([chain.draws for chain in store.chains]), states, store.notes, store._segments


@pytest.fixture(scope="module")
def two_generations(tmp_path_factory):
    """A checkpoint with what its newest generation and the one before hold."""
    path = tmp_path_factory.mktemp("damaged") / "c"
    part_way(path, draws=400, checkpoint_every=1000)  # arrays too long to be read at once
    part_way(path, draws=800, checkpoint_every=1000)
    with np.load(newest(path), allow_pickle=False) as archive:
        identity = json.loads(archive["manifest"].tobytes())["identity"]
    (path.parent / "identity.json").write_text(json.dumps(identity))
    whole = content_of(path)
    held = newest(path).read_bytes()
    newest(path).unlink()
    before = content_of(path)
    (path / f"generation-{2:08d}.npz").write_bytes(held)
    assert content_of(path) == whole != before
    return path, whole, before


def damaged_content(path, file, offset, value):
    """What is found with one byte of one file changed: the content, or the words of the error."""
    whole = file.read_bytes()
    file.write_bytes(whole[:offset] + bytes([value]) + whole[offset + 1 :])
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                return content_of(path), [str(warning.message) for warning in caught]
            except FileError as error:
                return None, [str(error)]
    finally:
        file.write_bytes(whole)


def check_damage(checkpoint, file, offset, value):
    path, whole, before = checkpoint
    found, said = damaged_content(path, file, offset, value)
    if found == whole:
        assert not said  # a byte that says nothing, such as the time in a zip archive
    elif found is None:
        assert file.name in said[0]
        assert "no whole generation is left" in said[0]
    else:
        assert found == before
        assert "going on from the one before" in said[0]
        assert file.name in said[0]


def test_a_shifted_array_is_noticed(two_generations):
    path = two_generations[0]
    for file in sorted(path.glob("*.npz")):
        content = file.read_bytes()
        head = -1
        while (head := content.find(b"\x93NUMPY\x01\x00", head + 1)) >= 0:
            check_damage(two_generations, file, head + 8, content[head + 8] - 16)


def test_no_damaged_byte_changes_what_a_run_goes_on_from(two_generations):
    files = sorted(two_generations[0].glob("*.npz"))
    rng = np.random.default_rng(0)
    for file in rng.choice(np.array(files, object), 400):
        content = file.read_bytes()
        offset = int(rng.integers(len(content)))
        check_damage(two_generations, file, offset, content[offset] ^ (1 << int(rng.integers(8))))


def test_an_archive_whose_contents_are_hidden_by_a_long_comment_is_damaged(two_generations):
    for file in sorted(two_generations[0].glob("*.npz")):
        content = file.read_bytes()
        entry = -1
        while (entry := content.find(b"PK\x01\x02", entry + 1)) >= 0:
            check_damage(two_generations, file, entry + 33, 255)  # length of the entry's comment


def test_a_damaged_generation_is_not_one_of_the_two_that_stay(tmp_path, reference):
    path = tmp_path / "c"
    part_way(path, draws=20)
    damaged = newest(path)
    flip_a_bit(damaged)
    with pytest.warns(EdgewiseWarning, match="going on from the one before"):
        part_way(path, draws=30, checkpoint_every=1000)
    assert not damaged.exists()
    truncate(newest(path))
    with pytest.warns(EdgewiseWarning, match="going on from the one before"):
        assert fingerprint(short_run(path).draws) == reference


def test_damage_to_draws_that_both_generations_need_is_refused(tmp_path):
    path = tmp_path / "c"
    part_way(path, draws=20, checkpoint_every=1000)
    part_way(path, draws=30, checkpoint_every=1000)
    truncate(min(path.glob("draws-*.npz")))
    with pytest.raises(FileError, match="no whole generation is left; delete the directory"):
        short_run(path)


def test_a_checkpoint_without_any_whole_generation_is_refused(tmp_path):
    path = tmp_path / "c"
    part_way(path)
    for file in path.glob("generation-*.npz"):
        truncate(file)
    with pytest.raises(FileError, match="no whole generation is left; delete the directory"):
        short_run(path)


def test_leftovers_of_a_killed_save_are_swept_away(tmp_path, reference):
    path = tmp_path / "c"
    part_way(path)
    for name in (".generation-00000099.npz.0badcafe.part", "generation-00000099.npz.part"):
        (path / name).write_bytes(b"half a file")
    orphan = path / f"draws-{int(newest(path).stem[-8:]) + 1:08d}.npz"
    orphan.write_bytes(b"draws of a generation that was never finished")
    assert fingerprint(short_run(path).draws) == reference
    assert not [entry.name for entry in path.iterdir() if entry.name.endswith(".part")]
    assert not orphan.exists()


def test_foreign_directories_and_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"holds other files \('thesis.tex'\)"):
        short_run(tmp_path)
    assert [file.name for file in tmp_path.iterdir() if file.name != "lock"] == ["thesis.tex"]
    with pytest.raises(FileError, match="cannot be written"):
        short_run(tmp_path / "thesis.tex")


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "FORMAT", "edgewise checkpoint 2")
    part_way(tmp_path / "c")
    monkeypatch.undo()
    with pytest.raises(FileError, match="has the format 'edgewise checkpoint 2' and this version reads"):
        short_run(tmp_path / "c")


# The disk says no.


def test_a_full_disk_keeps_the_generation_before(tmp_path, monkeypatch, reference):
    path = tmp_path / "c"
    part_way(path)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device.*20 draws per chain\) is intact"):
        short_run(path)
    monkeypatch.undo()
    assert not [entry.name for entry in path.iterdir() if entry.name.endswith(".part")]
    result = short_run(path)
    assert result.info["resumed_from_iteration"] >= 40
    assert fingerprint(result.draws) == reference


SCRIPT = """
import sys
from toy_engine import TOY, toy_problem
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from edgewise.errors import FileError
{before}
try:
    run(toy_problem(), RunOptions(
        engine=TOY, chains=2, min_draws=20_000, max_draws=20_000, target_ess=None, seed=7, progress=False,
        checkpoint=sys.argv[1], checkpoint_every=0.01))
except FileError as error:
    print(error)
    sys.exit(3)
"""


def run_script(before, path, **options):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before), str(path)],
        capture_output=True,
        text=True,
        env=environment,
        **options,
    )


def test_a_limit_on_file_sizes_stops_the_run_without_loss(tmp_path):
    pytest.importorskip("resource")
    path = tmp_path / "c"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))"
    done = run_script(limit, path)
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stdout
    assert "is intact" in done.stdout
    Checkpoint.open(path, json.loads(np.load(newest(path))["manifest"].tobytes())["identity"]).close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for 256 kB, where that can be had."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if mounted.returncode:
        pytest.skip(f"mounting a small file system is not allowed here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_small_disk_stops_the_run_without_loss(small_disk):
    done = run_script("", small_disk / "c")
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stdout
    identity = json.loads(np.load(newest(small_disk / "c"))["manifest"].tobytes())["identity"]
    stored = Checkpoint.open(small_disk / "c", identity)
    assert len(stored.chains[0].draws) > 0
    stored.close()


def test_a_disk_that_became_read_only_loses_nothing(small_disk, reference):
    part_way(small_disk / "c")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(FileError, match=r"cannot be written \(Read-only file system\); give a directory"):
        short_run(small_disk / "c")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert fingerprint(short_run(small_disk / "c").draws) == reference


def test_a_read_only_path_is_refused_before_any_work(tmp_path):
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        closed = Path("/sys")  # root may write wherever the kernel allows it, which is not here
    else:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o555)
    with pytest.raises(FileError, match=r"cannot be written \(.+\); give a directory that can be made"):
        short_run(closed / "c", settings={"fail_at": 0})


def test_draws_without_any_edge_survive(tmp_path):
    store = Checkpoint.open(tmp_path / "c", {})
    draws = Draws(
        np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0), np.ones((2, 4)), np.ones(2), np.ones(2)
    )
    store.save([({"x": np.arange(3)}, draws)], {"thin": 1, "seconds": 0.0})
    store.close()
    again = Checkpoint.open(tmp_path / "c", {})
    assert fingerprint([again.chains[0].draws]) == fingerprint([draws])
    assert again.chains[0].state["x"].tolist() == [0, 1, 2]
    again.close()


# The worst that can happen.


def kill_and_resume(directory, engine):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(TESTS / "kill_and_resume.py"), str(directory), "20", engine],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check_kills(outcome):
    assert outcome["kills"] == 20
    assert outcome["same_draws"]
    assert outcome["same_sums"]
    resumed = outcome["resumed"]
    assert resumed == sorted(resumed)  # no kill ever threw the run back
    assert sum(iteration > 0 for iteration in resumed) >= 5
    assert len(set(resumed)) >= 4
    assert outcome["last_resumed"] > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_twenty_times_the_run_ends_with_the_same_bytes(tmp_path):
    check_kills(kill_and_resume(tmp_path, TOY))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["exact", "particle", "langevin"])
def test_engines_killed_twenty_times_end_with_the_same_bytes(tmp_path, engine):
    check_kills(kill_and_resume(tmp_path, engine))
