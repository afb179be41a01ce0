"""Damage at random: a sentence or the same figures. `STALLMARK_DAMAGED=1000` in the environment does it more often."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.damage import damage, faults, forge, look
from support.record_kinds import KINDS

SEED, EACH = 23, int(os.environ.get("STALLMARK_DAMAGED", "4"))


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def copies(request, tmp_path_factory) -> Iterator[Path]:
    """Copies of a small record of each kind, always in one place: what commands print names it."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    (made := folder / "made").mkdir()
    request.param(made)

    def another() -> Iterator[Path]:
        while True:
            shutil.rmtree(folder / "copy", ignore_errors=True)
            yield Path(shutil.copytree(made, folder / "copy" / "runs"))

    return another()


@pytest.mark.thorough
def test_a_damaged_record_is_a_sentence_or_gives_the_same_figures(copies, request):
    before = look(next(copies))
    assert not any(seen.error for seen in before) and before[0].code == 0
    for number in range(EACH):
        rng = random.Random(f"{SEED}/{request.node.name}/{number}")
        copy, forged = next(copies), number % 3 == 2
        how = (forge if forged else damage)(copy, rng)
        assert faults(before, look(copy, rng), forged=forged) == [], how
