"""Long records are summarised in processes of their own, and to the same figures."""

import pickle

from support.synthetic import Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run

from stallmark.analysis.loads.summary import summarise_loads
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


def test_as_many_records_are_summarised_at_once_as_there_is_memory_for(tmp_path, monkeypatch):
    for number in (1, 2):
        make_run(tmp_path / f"{number:02d}", Truth(variant=f"v{number}", sequence=number, measured_s=10))
    records = find_records([tmp_path])
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    assert summaries.on_all_cores(records, lambda _, each: each) is not map
    for record in records:
        last = record.manifest.steps[-1]
        record.manifest = record.manifest.changed(steps=(*record.manifest.steps[:-1], last.changed(end_s=86_400.0)))
    assert summaries.on_all_cores(records, lambda _, each: each) is map


def test_a_run_of_several_loads_is_read_in_one_process_to_the_same_figures(tmp_path, monkeypatch):
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)})
    for number in (1, 2):
        make_loads_run(tmp_path / str(number), steps, repeat=number, sequence=number)
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    here = summaries.on_all_cores(find_records([tmp_path]), summarise_loads)
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    apart = summaries.on_all_cores(find_records([tmp_path]), summarise_loads)
    assert apart.whole.steps == here.whole.steps and apart.points == here.points
    assert {name: view.steps for name, view in apart.loads.items()} == {n: v.steps for n, v in here.loads.items()}
    assert list(apart.loads) == ["mail", "bank"] and [len(view.runs) for view in apart.loads.values()] == [2, 2]
