"""`stallmark selftest` tries everything on the embedded engine."""

from pathlib import Path

from support.tool import Tool
from support.whole_selftest import assert_everything_works


def test_selftest_tries_everything(tmp_path: Path):
    assert_everything_works(Tool(tmp_path))
