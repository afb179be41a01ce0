"""A small scenario that is right; tests make it wrong in one place each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stallmark.scenarios.model import Scenario
from stallmark.scenarios.read import read_scenario

RIGHT = """\
name: small
title: A small scenario
answers: Is it read?
needs: Nothing.
order: alternating
workload: {name: bank, scale: {branches: 1}}
users: 4
warm_up: 1s
measure: 10s
start_cache: prefilled
reset: restore
emulated_array:
  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}
variants:
  - name: slow
    buffer_pool: 8MiB
  - name: bare
    emulated_array: bare
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(RIGHT)
    return path


@pytest.fixture
def read(path: Path) -> Callable[..., Scenario]:
    """`read(old, new, …)` reads the scenario with parts of its text replaced; `sets` are --set options."""

    def read_changed(*replacements: str, sets: tuple[str, ...] = ()) -> Scenario:
        text = RIGHT
        for old, new in zip(replacements[::2], replacements[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        return read_scenario(str(path), sets)

    return read_changed
