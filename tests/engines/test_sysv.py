"""System V segments of killed servers: those of a folder go, and nothing that is used or somebody else's."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.embedded_servers import Make

from stallmark.engines.postgres import embedded_ownership
from stallmark.engines.postgres.embedded_ownership import leftover_segments
from stallmark.errors import StallmarkError
from stallmark.processes import Leftover

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="segments can be seen on Linux alone")

MAGIC = (679834894).to_bytes(4, "little")
CREATE, PRIVATE, REMOVE = 0o3000, 0, 0  # IPC_CREAT | IPC_EXCL, IPC_PRIVATE, IPC_RMID
LIBRARY = ctypes.CDLL(None)
LIBRARY.shmat.restype = ctypes.c_void_p
KILLED_BEFORE_ITS_HEADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/shm.h>
#include <unistd.h>
static int made;
int shmget(key_t key, size_t size, int flags) {
    int (*real)(key_t, size_t, int) = dlsym(RTLD_NEXT, "shmget");
    int number = real(key, size, flags);
    made |= number >= 0 && flags & IPC_CREAT;
    return number;
}
int fsync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return made ? kill(getpid(), SIGKILL) : real(file);
}
"""

MakeSegment = Callable[..., int]


@pytest.fixture
def make_segment() -> Iterator[MakeSegment]:
    """Makes segments that begin with some bytes; with `attached`, as a server that runs has them."""
    made: list[int] = []

    def make(content: bytes = b"", key: int = PRIVATE, *, size: int = 56, attached: bool = False) -> int:
        number = LIBRARY.shmget(ctypes.c_int(key), size, CREATE | 0o600)
        assert number >= 0
        made.append(number)
        address = LIBRARY.shmat(number, None, 0)
        ctypes.memmove(address, content, len(content))
        if not attached:
            LIBRARY.shmdt(ctypes.c_void_p(address))
        return number

    yield make
    for number in made:
        LIBRARY.shmctl(number, REMOVE, None)


def there() -> dict[int, str]:
    """Return the keys of all segments, as the system lists them."""
    lines = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {int(line[1]): line[0] for line in lines}


def key_of(folder: Path) -> int:
    return folder.stat().st_ino % 2**32


@pytest.mark.parametrize(
    ("content", "unfinished", "goes"),
    [
        (b"", False, True),
        (b"", True, True),
        (MAGIC, False, True),
        (MAGIC, True, False),  # the next server removes it, and what it leads to
        (b"else", False, False),
        (b"else", True, False),
    ],
)
def test_the_segment_of_a_folder_goes_by_what_it_holds(make_segment: MakeSegment, tmp_path, content, unfinished, goes):
    number = make_segment(content, key_of(tmp_path))
    other = make_segment(content)
    embedded_ownership.remove_segment(tmp_path, unfinished=unfinished)
    assert (number not in there()) == goes and other in there()


def test_the_segment_of_a_server_that_runs_stays(make_segment: MakeSegment, tmp_path):
    number = make_segment(MAGIC, key_of(tmp_path), attached=True)
    embedded_ownership.remove_segment(tmp_path)
    assert number in there() and number not in [one.number for one in embedded_ownership.unattached_segments()]


def test_a_segment_of_another_program_with_the_same_key_stays(make_segment: MakeSegment, tmp_path):
    number = make_segment(key=key_of(tmp_path), size=4096)
    embedded_ownership.remove_segment(tmp_path)
    assert number in there()


def test_a_folder_that_is_gone_has_none(make_segment: MakeSegment, tmp_path):
    number = make_segment(MAGIC)
    embedded_ownership.remove_segment(tmp_path / "gone")
    assert number in there()


LISTED = """\
       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime
   1163116         11   600         56     1     2      0 {own}     0     0     0 {looked_at} {looked_at} 1700000000
-794967296         12   600         56     1     2      0 {own}     0     0     0          0          0 1700000000
   1163117         13   600         56     1     2      1 {own}     0     0     0          0          0 1700000000
   1163118         14   600         56     1     2      0 {other}   0     0     0          0          0 1700000000
"""


def test_a_segment_is_as_old_as_its_making_whenever_it_was_looked_at(tmp_path, monkeypatch):
    text = LISTED.format(own=os.getuid(), other=os.getuid() + 1, looked_at=1_800_000_000)
    (tmp_path / "segments").write_text(text)
    monkeypatch.setattr(embedded_ownership, "_SEGMENTS", tmp_path / "segments")
    monkeypatch.setattr(embedded_ownership.time, "time", lambda: 1_800_000_000.0)
    assert list(embedded_ownership.unattached_segments()) == [
        embedded_ownership.Segment(11, 1_163_116, 56, 100_000_000.0),
        embedded_ownership.Segment(12, 3_500_000_000, 56, 100_000_000.0),
    ]


def test_doctor_lists_those_of_killed_servers_once_they_are_old(make_segment: MakeSegment, monkeypatch):
    left = make_segment(MAGIC)
    ours = {
        f"System V segment {number}" for number in (left, make_segment(b"else"), make_segment(MAGIC, attached=True))
    }

    def listed() -> list[Leftover]:
        return [one for one in leftover_segments() if one.place in ours]

    assert not listed()
    now = embedded_ownership.time.time()
    monkeypatch.setattr(embedded_ownership.time, "time", lambda: now + 3600)
    [one] = listed()
    assert one.bytes == 56
    one.remove()
    assert left not in there()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_server_killed_before_it_wrote_its_header_leaves_nothing(make_server: Make, tmp_path, monkeypatch):
    (tmp_path / "killed.c").write_text(KILLED_BEFORE_ITS_HEADER)
    library = tmp_path / "killed.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "killed.c", "-ldl"], check=True)
    server = make_server()
    key = str(key_of(server.data))
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", os.fspath(library))
        with pytest.raises(StallmarkError, match="SIGKILL"):
            server.start()
    [left] = [number for number, one in there().items() if one == key]
    server.start()
    assert left not in there()
    assert [one for one in there().values() if one == key]  # its own
    server.stop()
    assert key not in there().values()
