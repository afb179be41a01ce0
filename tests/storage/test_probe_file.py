"""A probe's own file: whole, marked, and gone afterwards; nothing else is touched."""

import json
import os
import shutil
import subprocess
import sys
import zlib
from collections import namedtuple

import pytest

from stallmark.errors import StallmarkError
from stallmark.storage.probe_file import (
    LEAST_BYTES,
    PREFIX,
    SKIP_BYTES,
    SUFFIX,
    existing_file,
    make_probe_file,
    remove_leftovers,
)

KILLED = """
import os, sys
from pathlib import Path
from stallmark.storage.probe_file import LEAST_BYTES, make_probe_file
with make_probe_file(Path(sys.argv[1]), LEAST_BYTES):
    os._exit(9)
"""


def test_it_is_whole_half_compressible_and_has_no_two_pages_alike(tmp_path):
    with make_probe_file(tmp_path, LEAST_BYTES) as file:
        assert file.ours and file.place == str(tmp_path) and file.path.stat().st_size == LEAST_BYTES
        data = file.path.read_bytes()[SKIP_BYTES:]
    pages = {data[at : at + 4096] for at in range(0, len(data), 4096)}
    assert len(pages) == len(data) // 4096
    assert 1.7 < 2**20 / len(zlib.compress(data[: 2**20], 1)) < 2.3
    assert list(tmp_path.iterdir()) == []


def test_a_folder_it_made_goes_with_it_and_one_with_other_files_stays(tmp_path):
    made = tmp_path / "new"
    with make_probe_file(made, LEAST_BYTES):
        assert made.is_dir()
    assert not made.exists()
    with pytest.raises(ValueError, match="mine"), make_probe_file(made, LEAST_BYTES):
        (made / "precious").touch()
        raise ValueError("mine")
    assert [path.name for path in made.iterdir()] == ["precious"]


def test_what_a_killed_one_left_the_next_one_removes(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    [left] = tmp_path.iterdir()
    assert done.returncode == 9 and left.stat().st_size == LEAST_BYTES
    foreign = tmp_path / f"{PREFIX}mine{SUFFIX}"
    foreign.write_text("not made by a probe")
    with make_probe_file(tmp_path, LEAST_BYTES) as ours:
        assert not left.exists() and foreign.exists()
        assert remove_leftovers(tmp_path) == [], "one that is in use stays"
        assert ours.path.exists()


def test_a_clock_that_is_set_takes_nobodys_file_away(tmp_path):
    with make_probe_file(tmp_path, LEAST_BYTES) as ours:
        for seconds, left in ((2, []), (1000, [ours.path])):
            with ours.path.open("r+b") as file:
                mark = json.loads(file.read(4096).rstrip(b"\0"))
                file.seek(0)
                file.write(json.dumps(mark | {"process started": mark["process started"] + seconds}).encode())
            assert remove_leftovers(tmp_path) == left


def test_what_goes_wrong_with_other_files_is_not_blamed_on_its_own(tmp_path):
    with pytest.raises(FileNotFoundError, match="report"), make_probe_file(tmp_path, LEAST_BYTES):
        (tmp_path / "report").read_text()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "sentence"),
    [
        (10 * 2**30, r"give it at most 5120MiB, or make room\.$"),
        (5 * 2**30, r"too little for 8.0 GiB to read and write .*: make room\.$"),
    ],
)
def test_too_little_space_is_said_before_anything_is_written(tmp_path, monkeypatch, free, sentence):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100 * 2**30, 0, free))
    with pytest.raises(StallmarkError, match=sentence), make_probe_file(tmp_path, 8 * 2**30):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(StallmarkError, match=r"No space left on device\): choose another folder"),
        make_probe_file(tmp_path, LEAST_BYTES),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_too_small_is_refused(tmp_path):
    with pytest.raises(StallmarkError, match=r"too small to distinguish a device from .*: choose at least 32 MiB"):
        make_probe_file(tmp_path, LEAST_BYTES - 1).__enter__()


def test_an_existing_file_is_left_alone_unless_asked_for_and_then_only_read(tmp_path):
    path = tmp_path / "mine"
    with path.open("wb") as file:
        file.truncate(LEAST_BYTES + 5)
    with pytest.raises(StallmarkError, match=r"is an existing file, which a probe leaves alone: .* --i-know"):
        existing_file(path, LEAST_BYTES, False).__enter__()
    with existing_file(path, 2 * LEAST_BYTES, True) as found:
        assert (found.bytes, found.ours) == (LEAST_BYTES + 5, False)
    with path.open("wb") as file:
        file.truncate(100)
    with pytest.raises(StallmarkError, match="has 0 MiB, too few"):
        existing_file(path, LEAST_BYTES, True).__enter__()
    with pytest.raises(StallmarkError, match="neither a folder, a file nor a block device"):
        existing_file(tmp_path, LEAST_BYTES, True).__enter__()
