"""Replacing files: the old one or the new one, whole, and nothing else is touched."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from edgewise.atomic import beside, replacing
from edgewise.errors import FileError


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_text_and_bytes_take_the_place_of_the_old_file(tmp_path):
    target = tmp_path / "edges.csv"
    with replacing(target) as file:
        file.write(b"old")
    with replacing(target, "utf-8") as file:
        file.write("new\r\n")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new\r\n"
    assert names(tmp_path) == ["edges.csv"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "edges.csv"
    target.write_text("old")

    def fail():
        with replacing(target, "utf-8") as file:
            file.write("half of the n")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert target.read_text("utf-8") == "old"
    assert names(tmp_path) == ["edges.csv"]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    precious, link = tmp_path / "thesis.tex", tmp_path / "edges.csv"
    precious.write_text("years of work")
    link.symlink_to(precious)
    with replacing(link, "utf-8") as file:
        file.write("new")
    assert precious.read_text("utf-8") == "years of work"
    assert not link.is_symlink()
    assert link.read_text("utf-8") == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as file:
        file.write(b"through the pipe")
    reader.join()
    assert seen == [b"through the pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with beside(tmp_path / "posterior.nc") as draft:
            draft.write_bytes(b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "posterior.nc").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["ä" * 127, "x" * 255])
def test_the_longest_names_are_possible(tmp_path, name):
    with replacing(tmp_path / name) as file:
        file.write(b"content")
    assert names(tmp_path) == [name]


def test_directories_and_missing_places_are_refused(tmp_path):
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no" / "file", "No such file")):
        with pytest.raises(FileError, match=f"cannot be written: {reason}"), replacing(path) as file:
            file.write(b"content")
    assert names(tmp_path) == []
