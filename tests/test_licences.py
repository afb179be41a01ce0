"""Every package that is installed with Stallmark is listed with its licence."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_locked_package_is_listed():
    locked = set(
        re.findall(r"^([a-z0-9][a-z0-9-]*)(?:\[.*\])?==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    )
    page = (ROOT / "docs/licences.md").read_text()
    always, extra = (
        set(re.findall(rf"^\| ([a-z0-9-]+) \| .+ \| {word} \|$", page, re.MULTILINE))
        for word in ("(?:always|on Windows)", "with an extra")
    )
    assert len(locked) > 50 and always == locked
    assert {"docker", "tpchgen-cli", "pyodbc"} <= extra
