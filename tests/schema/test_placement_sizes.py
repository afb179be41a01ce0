"""How large the files of a design are, and what is refused as a file or a name."""

from dataclasses import replace

import pytest
from support.designs import DESIGN, ROWS

from stallmark.errors import StallmarkError
from stallmark.schema.bank import tables as bank
from stallmark.schema.placement.design import (
    GIB,
    MIB,
    TIB,
    Design,
    File,
    Filegroup,
    Settings,
    TableGroup,
    default_name,
    sized,
)


def test_sizes_hold_the_data_and_a_run():
    open_design = Design(
        files=(File("/a", "a"), File("/b", "b")),
        filegroups=(Filegroup("growing", (File("/c", "c"),)),),
        log=(File("/l", "l"),),
        tables=(TableGroup(("history",), "growing"),),
    )
    found = sized(open_design, bank.METADATA.tables.values(), ROWS)
    a, b = (file.size_bytes for file in found.files)
    # The heap of accounts, its clustered copy, and its upper levels: 10 million rows, 77 in a page of 8 KiB.
    heap = 10_000_000 / 77 * 8192
    assert a == b and a % MIB == 0
    assert 2 * heap < a + b < 2.2 * heap
    [growing] = found.filegroups[0].files
    assert growing.size_bytes == GIB, "the history begins empty and has room"
    [log] = found.log
    assert log.size_bytes and heap <= log.size_bytes < 1.1 * heap + GIB
    full = sized(replace(open_design, settings=Settings("full")), bank.METADATA.tables.values(), ROWS)
    assert full.log[0].size_bytes and full.log[0].size_bytes > log.size_bytes + heap


def test_a_given_size_stays_and_the_others_take_the_rest():
    files = (File("/a", "a", 100 * GIB), File("/b", "b"))
    found = sized(Design(files=files), bank.METADATA.tables.values(), ROWS)
    assert [file.size_bytes for file in found.files] == [100 * GIB, 8 * MIB]
    assert sized(DESIGN, bank.METADATA.tables.values(), ROWS) == DESIGN


def test_more_than_a_file_holds_is_refused():
    rows = {"bank.accounts": 200_000_000_000}
    with pytest.raises(StallmarkError, match=r"/a would need [\d.]+ TiB, and a file holds 16 TiB: name more files\."):
        sized(Design(files=(File("/a", "a"),)), bank.METADATA.tables.values(), rows)
    more = tuple(File(f"/{number}", f"f{number}") for number in range(8))
    assert (
        sum(file.size_bytes or 0 for file in sized(Design(files=more), bank.METADATA.tables.values(), rows).files)
        > 16 * TIB
    )


@pytest.mark.parametrize(
    ("path", "name"), [("/data/a b.mdf", "a b"), (r"D:\x\bank.v2.mdf", "bank.v2"), ("/data/bank", "bank")]
)
def test_a_file_is_named_after_its_path(path, name):
    assert default_name(path) == name


@pytest.mark.parametrize(
    "path", ["", "bank.mdf", "D:bank.mdf", "/data/", "D:\\", r"\\nas\share\a.mdf", "/a\nb", "/" + "x" * 260, "//nas/a"]
)
def test_what_is_no_file_on_a_server_is_refused(path):
    with pytest.raises(StallmarkError):
        File(path, "a")


@pytest.mark.parametrize("group", ["default", "DEFAULT", "Primary", "", " a", "a ", "x" * 129, "a\tb"])
def test_a_filegroup_s_name_that_means_another(group):
    with pytest.raises(StallmarkError):
        Design(files=(File("/a", "a"),), filegroups=(Filegroup(group, (File("/b", "b"),)),))
