"""Long records are summarised in processes of their own, and to the same figures."""

import pickle

from support.synthetic import Truth, make_run

from stallmark.cli import summaries
from stallmark.record.reader import find_records


class Pool:
    """Arguments and results of a process are pickled; starting one would take seconds."""

    def __init__(self, workers: int, **_):
        assert workers == 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, function, *arguments):
        for one in zip(*arguments, strict=True):
            sent, what = pickle.loads(pickle.dumps((function, one)))
            yield pickle.loads(pickle.dumps(sent(*what)))


def test_long_records_are_summarised_side_by_side_to_the_same_figures(tmp_path, monkeypatch):
    for number, tps in enumerate((300.0, 360.0), 1):
        make_run(tmp_path / f"{number:02d}", Truth(tps=tps, variant=f"v{number}", sequence=number, measured_s=10))
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    here = summaries.summarise_records(find_records([tmp_path]))
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    apart = summaries.summarise_records(find_records([tmp_path]))
    assert apart.steps == here.steps and [step.key for step in apart.steps] == ["run1-step1", "run2-step1"]
