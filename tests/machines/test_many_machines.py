"""Many load machines at one master: what they report is in the record, all of it and once."""

from collections import Counter
from pathlib import Path

from benchmarks.load_machines import committed, measure
from support.remote import free_port
from support.simulated_machines import EXECUTORS, USERS

MACHINES = 12


def test_the_record_has_what_the_machines_have_sent(tmp_path: Path) -> None:
    found = measure(MACHINES, free_port(), tmp_path / "run", warm_up_s=0, seconds=3)
    record = found.record
    assert committed(record) == found.told.committed and len(found.told.committed) == 12
    assert [machine.number for machine in record.manifest.load_machines] == list(range(1, MACHINES + 1))
    assert all(machine.clock_within_ms > 0 for machine in record.manifest.load_machines)
    in_histograms: Counter[str] = Counter()
    for row in record.table("transactions").to_pylist():
        in_histograms[row["transaction"]] += sum(row["latency_counts"])
        assert sum(row["latency_counts"]) == sum(row["service_counts"])
    assert dict(in_histograms) == found.told.committed
    rows = record.table("users").to_pylist()
    executors = Counter((row["second"], row["machine"], row["executor"]) for row in rows)
    assert set(executors.values()) == {1}
    assert {executor for _, _, executor in executors} == set(range(MACHINES * EXECUTORS))
    running: Counter[int] = Counter()
    for row in rows:
        running[row["second"]] += row["running"]
    assert max(running.values()) == MACHINES * EXECUTORS * USERS
