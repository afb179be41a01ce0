"""The record of one load has its own rows and steps, and what the server told of all."""

import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.manifests import a_manifest
from support.tables import get, put

from stallmark.errors import StallmarkError
from stallmark.record.manifest.workload import cut_short, ended_early
from stallmark.record.reader import LoadRecord, Record, recorded_seconds
from stallmark.record.schema import ERRORS
from stallmark.record.writer import RecordWriter

STEPS = [
    {"name": name, "users": users, "begin_s": at, "measure_s": at + 1.0, "end_s": at + 5.0}
    for name, users, at in (("bank alone", 3, 0.0), ("mail alone", 2, 5.0), ("together", 5, 10.0))
]
LOADS = [
    {"name": "bank", "kind": "users", "counts": [3, 0, 3], "workload": {"name": "bank"}, "thresholds": ["tps > 1"]},
    {"name": "mail", "kind": "users", "counts": [0, 2, 2], "workload": {"name": "mail"}, "rate": 7.0},
    {"name": "scan", "kind": "raw", "counts": [0, 0, 1]},
]


@pytest.fixture
def record(tmp_path):
    tables = {"errors": ERRORS, "host": pa.schema([("event", pa.string())])}
    writer = RecordWriter(tmp_path / "run", a_manifest(steps=STEPS, loads=LOADS), tables)
    row = dict.fromkeys(("transaction", "error_class", "message"), "x") | {"attempts": 1, "given_up": 0}
    rows = [row | {"second": n, "load": "bank" if n % 2 else "mail", "code": str(n)} for n in range(5)]
    writer.append("errors", rows)
    writer.append("host", [{"event": "x"}, {"event": "y"}])
    writer.close()
    return Record(writer.folder)


def test_a_load_has_its_own_rows(record):
    mail = LoadRecord(record, "mail")
    assert [row for batch in mail.batches("errors", ["code"]) for row in batch.to_pylist()] == [
        {"code": "0"}, {"code": "2"}, {"code": "4"},
    ]  # fmt: skip
    assert mail.table("errors")["second"].to_pylist() == [0, 2, 4]
    assert sum(batch.num_rows for batch in mail.batches("host", ["event"])) == 2


def test_rows_that_do_not_name_their_load_are_refused(record):
    put(record.folder, "errors", get(record.folder, "errors").drop_columns("load"))
    mail = LoadRecord(Record(record.folder), "mail")
    for read in (mail.table, lambda name: list(mail.batches(name, ["code"]))):
        with pytest.raises(StallmarkError, match="no column load"):
            read("errors")


WAITS = pa.schema(
    [
        *(("second", pa.int32()), ("application", pa.string()), ("samples", pa.int32()), ("polls", pa.int32())),
        *(("wait_class", pa.string()), ("event", pa.string())),
    ]
)
SAMPLED = [
    {"second": second, "application": f"stallmark-user-{load}", "samples": second, "polls": 5}
    | {"wait_class": "io", "event": "read"}
    for second, load in ((1, "bank"), (6, "mail"), (11, "bank"), (11, "mail"), (12, "mailing"))
]


@pytest.mark.parametrize(("application", "seconds"), [(True, [6, 11]), (False, [1, 6])])
def test_sampled_sessions_are_its_own_or_of_steps_without_other_users(record, application, seconds):
    columns = WAITS if application else WAITS.remove(1)
    writer = RecordWriter(record.folder.parent / "sampled", a_manifest(steps=STEPS, loads=LOADS), {"waits": columns})
    writer.append("waits", [{name: row[name] for name in columns.names} for row in SAMPLED])
    writer.close()
    mail = LoadRecord(Record(writer.folder), "mail")
    rows = [row for batch in mail.batches("waits", ["samples"]) for row in batch.to_pylist()]
    assert rows == [{"samples": second} for second in seconds]


def test_the_column_that_tells_loads_apart_is_there_where_it_is_asked_for(record):
    (batch,) = LoadRecord(record, "bank").batches("errors", ["load", "second"])
    assert batch.to_pylist() == [{"load": "bank", "second": 1}, {"load": "bank", "second": 3}]


def test_a_load_has_the_steps_in_which_it_ran_with_its_own_users(record):
    mail = LoadRecord(record, "mail").manifest
    assert [(step.name, step.users, step.beside, step.rate) for step in mail.steps] == [
        ("mail alone", 2, (), 7.0), ("together", 2, ("bank", "scan"), 7.0),
    ]  # fmt: skip
    assert mail.workload.name == "mail"
    assert LoadRecord(record, "bank").manifest.scenario.thresholds == ["tps > 1"]


def test_a_steered_step_has_the_rate_that_it_was_steered_to(tmp_path):
    steered = {"wanted": 0.12, "mailboxes": 100, "limit_ms": 20, "outcome": "reached", "rate": 5.0}
    steps = [STEPS[0], STEPS[1] | {"steered": steered}, STEPS[2]]
    RecordWriter(tmp_path / "run", a_manifest(steps=steps, loads=LOADS)).close()
    alone, together = LoadRecord(Record(tmp_path / "run"), "mail").manifest.steps
    assert (alone.rate, together.rate) == (5.0, 7.0)


def test_what_was_left_of_one_load_is_not_said_of_another(tmp_path):
    bank, mail, scan = LOADS
    left = {"left_waiting": {"arrivals": 7, "deferred": 3}, "unfinished": 2}
    whole = {"left_waiting": left["left_waiting"], "unheard": {"unfinished": 2, "silent": 1}}
    RecordWriter(tmp_path / "run", a_manifest(steps=STEPS, loads=[bank | left, mail, scan], **whole)).close()
    of_bank, of_mail = (LoadRecord(Record(tmp_path / "run"), name).manifest for name in ("bank", "mail"))
    assert (of_bank.left_waiting.arrivals, of_bank.left_waiting.deferred, of_bank.unheard.unfinished) == (7, 3, 2)
    assert (of_mail.left_waiting.arrivals, of_mail.left_waiting.deferred, of_mail.unheard.unfinished) == (0, 0, 0)
    assert of_bank.unheard.silent == of_mail.unheard.silent == 1


def test_a_load_says_how_large_it_is_in_every_step():
    with pytest.raises(ValidationError, match="lacks its size in a step"):
        a_manifest(steps=STEPS, loads=[LOADS[0] | {"counts": [1]}])


def test_a_load_that_ended_early_is_cut_and_the_others_are_whole(record):
    writer = RecordWriter(record.folder.parent / "cut", a_manifest(steps=STEPS, loads=LOADS))
    loads = cut_short(record.manifest.loads, {"mail": (12, "it was killed"), "scan": (13, "it was killed")})
    writer.update(loads=loads)
    writer.close(ended_early(loads))
    whole = Record(writer.folder)
    assert whole.incomplete_because and "mail ended early, after 12 s: it was killed" in whole.incomplete_because
    mail, bank = LoadRecord(whole, "mail"), LoadRecord(whole, "bank")
    assert (mail.incomplete_because, recorded_seconds(mail)) == ("it was killed", 12)
    assert bank.incomplete_because is None and bank.ended_s is None
    others = ("mail", "scan")
    assert [(step.beside, step.missed) for step in bank.manifest.steps] == [((), ()), (others, others)]
    assert [step.missed for step in mail.manifest.steps] == [(), ()]


def test_a_run_that_was_cut_is_cut_for_every_load(record):
    writer = RecordWriter(record.folder.parent / "stopped", a_manifest(steps=STEPS, loads=LOADS))
    writer.update(loads=cut_short(record.manifest.loads, {"mail": (3, "it was killed")}))
    writer.close("the server ended")
    whole = Record(writer.folder)
    assert LoadRecord(whole, "bank").incomplete_because == "the server ended"
    assert LoadRecord(whole, "mail").incomplete_because == "it was killed"
    assert [step.missed for step in LoadRecord(whole, "bank").manifest.steps] == [(), ("mail",)]
