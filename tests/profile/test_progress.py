"""The progress of a profile in a log: lines that do not go by how long the machine has been up."""

from itertools import pairwise

import pytest

from stallmark.cli.common import err
from stallmark.profile import command
from stallmark.profile.collection import CollectionProgress


@pytest.mark.parametrize("begins_s", [0.0, 5.0, 1e6])
@pytest.mark.parametrize(("planned_s", "lines"), [(600, 20), (86_400, 96)])
def test_lines_come_soon_and_at_even_intervals(begins_s, planned_s, lines, monkeypatch, capsys):
    now_s = begins_s
    monkeypatch.setattr(command.time, "monotonic", lambda: now_s)
    written_s = []
    with command._progress_line(planned_s, err) as show:
        for passed_s in range(0, planned_s, 15):
            now_s = begins_s + passed_s
            show(CollectionProgress(passed_s, planned_s, 1, 0, *((1.0, 2.0) if passed_s else (None, None))))
            written_s += [passed_s] * capsys.readouterr().err.count("reads/s")
        show(CollectionProgress(passed_s, planned_s, 1, 0, trouble="it is gone"))
    assert "it is gone" in capsys.readouterr().err
    assert written_s[0] == 15 and len(written_s) == pytest.approx(lines, abs=1)
    assert {later - earlier for earlier, later in pairwise(written_s)} == {min(900, planned_s / 20)}
