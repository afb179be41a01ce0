"""The smallest I/O that goes past the page cache."""

import errno
import os
import sys

import pytest

from stallmark.errors import StallmarkError
from stallmark.storage.direct_io import least_direct_bytes

pytestmark = pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason=f"{sys.platform} has no O_DIRECT.")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "file").write_bytes(bytes(2**20))
    return tmp_path / "file"


@pytest.mark.parametrize("sector", [512, 4096])
def test_it_is_the_smallest_read_that_the_device_takes(file, monkeypatch, sector):
    def read(descriptor, parts, offset):
        if len(parts[0]) % sector or offset % sector:
            raise OSError(errno.EINVAL, "Invalid argument")
        return len(parts[0])

    monkeypatch.setattr(os, "open", lambda path, flags, real=os.open: real(path, flags & ~os.O_DIRECT))
    monkeypatch.setattr(os, "preadv", read)
    assert least_direct_bytes(file) == sector


def test_a_file_system_without_direct_io_is_refused(file, monkeypatch):
    def refuse(path, flags):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StallmarkError, match="no direct I/O"):
        least_direct_bytes(file)
