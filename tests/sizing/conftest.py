"""A profile, and candidates that were sized for it."""

from pathlib import Path

import pytest
from support.profiles import DATA, LOG, write_made_profile
from support.sizings import write_sizing_of

from stallmark.sizing.summary import SizingSummary, size


def busy(n: int) -> dict:
    """Three times as much I/O for a quarter of an hour."""
    factor = 3 if 100 <= n < 160 else 1
    return {name: {column: value * (1 if column == "size_bytes" else factor) for column, value in row.items()}
            for name, row in (("data", DATA), ("log", LOG))}  # fmt: skip


@pytest.fixture(scope="module")
def profile(tmp_path_factory) -> Path:
    """Two hours and a half with a busy quarter of an hour."""
    return write_made_profile(tmp_path_factory.mktemp("profile") / "shop", 600, file_io=busy)


@pytest.fixture(scope="module")
def with_stand_in(tmp_path_factory, profile) -> Path:
    """A candidate whose stand-in ends before its replay."""
    return write_sizing_of(tmp_path_factory.mktemp("b") / "b", profile, replay=(1.5, 1.6), stand_in=(1.25, 1.38))


@pytest.fixture
def sized(tmp_path, profile):
    def made(count: int = 0, /, **options) -> SizingSummary:
        given = {name: options.pop(name) for name in ("percentile", "growth", "other", "today") if name in options}
        return size(profile, [write_sizing_of(tmp_path / f"c{count}", profile, **options)], **given)

    return made
