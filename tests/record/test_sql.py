"""SELECTs over the tables of records: what they answer, and that nothing else is executed."""

import signal
import tempfile
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.command_line import signals_as_before
from support.manifests import changed
from support.probes import of_disks
from support.record_kinds import collected, collecting, imported, probed
from support.synthetic import Truth, make_run
from support.tables import get, put

from stallmark import stopping
from stallmark.analysis.profile_intervals import intervals_of
from stallmark.errors import StallmarkError
from stallmark.record import sql
from stallmark.record.profile import is_profile, read_profile, write_profile
from stallmark.record.profile_tables import Profile, find_table_folders
from stallmark.record.reader import Record, find_records
from stallmark.record.sql import answer

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
SHORT = Truth(warm_up_s=3, measured_s=12, failed_per_second=2)


def ask(statement: str, *folders: Path) -> list[tuple[Any, ...]]:
    records = [Profile(folder) if is_profile(folder) else Record(folder) for folder in folders]
    with answer(records, statement) as answered:
        return list(answered.rows)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("sql") / "01-fast", SHORT)


@pytest.fixture
def own(tmp_path) -> Path:
    """A run that a test may change."""
    return make_run(tmp_path / "own", SHORT)


def test_every_table_is_there_with_the_name_of_the_run(run):
    tables = Record(run).tables()
    shown = ask("select table_name, column_name from information_schema.columns order by ordinal_position", run)
    for table in tables:
        columns = [column for name, column in shown if name == table]
        assert columns == ["run", *Record(run).schema(table).names], table
        whole = Record(run).table(table)
        assert ask(f'select count(*), min(run), max(run) from "{table}"', run) == (
            [(whole.num_rows, "01-fast", "01-fast")] if whole.num_rows else [(0, None, None)]
        )


def test_values_are_those_of_the_record(run):
    whole = Record(run).table("transactions")
    assert len(tables := ask("from transactions", run)) == whole.num_rows
    assert [row[1:] for row in tables] == [tuple(row.values()) for row in whole.to_pylist()]
    assert ask("select sum(latency_us) from transactions", run) == [(pc.sum(whole["latency_us"]).as_py(),)]


def test_a_table_that_is_named_twice_is_read_twice(run):
    [(rows,)] = ask("select count(*) from users", run)
    assert rows and ask("select count(*) from users a join users b using (second, executor)", run) == [(rows,)]


def test_the_measured_interval_is_in_steps(run):
    [(name, variant, begin, end)] = ask("select run, variant, measure_s, end_s from steps", run)
    assert (name, variant, begin, end) == ("01-fast", Record(run).manifest.variant.name, 3.0, 15.0)
    seconds = ask("select distinct second from users join steps using (run) where second >= measure_s order by 1", run)
    assert seconds == [(second,) for second in range(3, 15)]


def test_runs_of_one_name_are_told_apart(tmp_path):
    folders = [make_run(tmp_path / day / "01-a", Truth(measured_s=5, seed=n)) for n, day in enumerate("xy")]
    rows = ask("select distinct run from users order by run", *folders)
    assert rows == [("x/01-a",), ("y/01-a",)]
    deep = make_run(tmp_path / "z" / "x" / "01-a", Truth(measured_s=5, seed=2))
    assert len(ask("select distinct run from users", folders[0], deep)) == 2


def test_a_column_or_table_that_an_older_record_lacks_is_missing_there(run, own):
    put(own, "waits", get(own, "waits").drop_columns("application"))
    rows = ask("select run, count(application), count(*) from waits group by run order by run", run, own)
    assert [(name, known == every, every > 0) for name, known, every in rows] == [
        ("01-fast", True, True), ("own", False, True)
    ]  # fmt: skip
    assert rows[1][1] == 0
    (own / "wal.parquet").unlink()
    changed(own, tables={name: file for name, file in Record(own).manifest.tables.items() if name != "wal"})
    assert ask("select distinct run from wal", run, own) == [("01-fast",)]


def test_numbers_of_two_kinds_become_the_wider(run, own):
    committed = get(own, "transactions").schema.get_field_index("committed")
    table = get(own, "transactions")
    put(own, "transactions", table.set_column(committed, "committed", table["committed"].cast(pa.int64())))
    [(kind, total)] = ask("select typeof(any_value(committed)), sum(committed) from transactions", run, own)
    both = sum(pc.sum(Record(folder).table("transactions")["committed"]).as_py() for folder in (run, own))
    assert (kind, total) == ("BIGINT", both)


def test_tables_that_do_not_fit_together_are_a_sentence(own, tmp_path):
    other = make_run(tmp_path / "other", SHORT)
    for folder, load in ((own, 1.5), (other, "1.5")):
        table = get(folder, "host")
        put(folder, "host", table.append_column("load_1m", pa.array([load] * table.num_rows)))
    with pytest.raises(StallmarkError, match=r"tables host that do not fit together \(.*load_1m.*\): ask each record"):
        ask("from host", own, other)


def test_a_run_that_goes_on_or_was_killed_is_read_as_far_as_it_was_written(tmp_path):
    run = make_run(tmp_path / "cut", Truth(warm_up_s=3, measured_s=12, cut_at=9))
    assert not list(run.glob("*.parquet"))
    for table in ("users", "server_io"):
        assert ask(f"select count(*) from {table}", run) == [(Record(run).table(table).num_rows,)]


def test_a_probe_has_its_tables(tmp_path):
    probed(tmp_path)
    [record] = find_records([tmp_path])
    assert ask("select count(*) from probe_steps", record.folder) == [(len(of_disks(4, 5)),)]
    assert ask("from steps", record.folder) == []


# Profiles -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profiles(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("profiles")
    for make in (collected, collecting, imported):
        (folder / make.__name__).mkdir()
        make(folder / make.__name__)
    return {path.name: path / "profile" for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["collected", "collecting", "imported"])
def test_the_tables_of_a_profile_are_there_with_their_values(profiles, name):
    profile = Profile(profiles[name])
    shown = ask("select table_name, column_name from information_schema.columns", profile.folder)
    assert {table for table, _ in shown} == {*profile.tables(), "steps"}
    assert sum(profile.table(table).num_rows > 0 for table in profile.tables()) >= 2
    for table in profile.tables():
        whole = profile.table(table)
        assert [column for of, column in shown if of == table] == ["run", *whole.column_names]
        values = [("profile", *row.values()) for row in whole.to_pylist()]
        assert ask(f"from {table}", profile.folder) == values


def test_sessions_of_collecting_are_one_table(profiles):
    rows = ask("select session, count(*), min(sample) from samples group by all order by all", profiles["collecting"])
    assert rows == [(1, 20, 40), (2, 20, 80)]


def test_runs_and_profiles_are_asked_together(profiles, run):
    folders = profiles["collected"], profiles["imported"], run
    [(of_run,)] = ask("select distinct run from steps", *folders)
    assert of_run.endswith("/01-fast")
    names = ask("select distinct run from file_io union select distinct run from samples", *folders)
    assert sorted(names) == [("collected/profile",), ("imported/profile",)]
    assert ask("select count(*) from users", *folders) == ask("select count(*) from users", run)


def test_a_profile_named_twice_is_one_and_comes_after_runs(profiles, run):
    folder = profiles["collected"]
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert [record.folder for record in find_table_folders([run, folder, link])] == [run, folder]


@pytest.mark.parametrize("statement", ["copy samples to '{out}'", "attach '{out}' as other", "delete from samples",
                                       "from read_text('{secret}')", "from users"])  # fmt: skip
def test_what_is_refused_of_a_run_is_refused_of_a_profile(profiles, places, statement):
    with pytest.raises(StallmarkError, match=r"the tables of the records|The records have no table users: choose one"):
        ask(statement.format(**places), profiles["collected"])
    assert not places["out"].exists()


def test_a_value_that_did_not_change_holds_for_all_samples_after_it(profiles):
    [(stored, shown)] = ask(
        "select count(distinct stored.sample), count(*) filter (value = 12) from samples asof join"
        " (from server_counters where counter = 'connections') as stored on samples.sample >= stored.sample",
        profiles["collected"],
    )
    assert (stored, shown) == (2, 40)  # a row for each session


def test_the_differences_of_a_profile_s_counters_are_those_of_its_report(profiles):
    folder = profiles["collected"]
    asked = ask(
        "select file_class, sum(n)::double, sum(ms) from (select file_class, reads - lag(reads) over w as n,"
        " read_stall_ms - lag(read_stall_ms) over w as ms from file_counters join samples using (sample)"
        " window w as (partition by session, entity, epoch order by sample)) group by all order by all",
        folder,
    )
    intervals = intervals_of(folder)
    reported = [(name, *(np.nansum(intervals.column(f"{name}.{column}")) for column in ("reads", "read_stall_ms")))
                for name in ("data", "log")]  # fmt: skip
    assert asked == reported and asked[0][1] > 10_000


def test_a_damaged_part_of_a_profile_is_named_whichever_table_was_asked_for(tmp_path):
    collected(tmp_path)
    flip(tmp_path / "profile" / "wait_counters-002.parquet", 100)
    with pytest.raises(StallmarkError, match=r"wait_counters-002\.parquet is damaged .* collect the profile anew"):
        ask("from samples", tmp_path / "profile")


def test_rows_that_no_profile_has_are_refused(tmp_path):
    imported(tmp_path)
    path = tmp_path / "profile" / "file_io.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("file_class")
    changed_class = table.set_column(place, "file_class", pa.array(["odd"] * table.num_rows))
    pq.write_table(changed_class, path, write_page_checksum=True)
    made = read_profile(tmp_path / "profile")
    write_profile(tmp_path / "profile", made.changed(tables={}))
    with pytest.raises(StallmarkError, match=r"file_io is damaged \(its column file_class.* import the profile anew"):
        ask("from file_io", tmp_path / "profile")


def test_the_hours_of_a_profile_are_utc_wherever_they_are_asked(profiles, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    ten = datetime(2026, 3, 2, 10, tzinfo=UTC)
    [(first, hour)] = ask(
        "select min(to_timestamp(clock)), max(date_trunc('hour', to_timestamp(clock))) from samples",
        profiles["collected"],
    )
    assert (first, hour) == (ten, ten)
    assert ask("select min(start) from file_io", profiles["imported"]) == [(ten,)]


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_a_damaged_file_is_named_whichever_table_was_asked_for(own):
    flip(own / "waits.parquet", 100)
    with pytest.raises(StallmarkError, match=r"own/waits\.parquet is damaged"):
        ask("from users", own)


def test_damage_of_a_page_is_found_in_a_record_without_checksums_of_files(own):
    changed(own, tables={})
    column = pq.read_metadata(own / "users.parquet").row_group(0).column(0)
    begin = column.dictionary_page_offset or column.data_page_offset
    flip(own / "users.parquet", begin + column.total_compressed_size - 3)
    with pytest.raises(StallmarkError, match=r"own/users\.parquet is damaged"):
        ask("select sum(second) from users", own)


def test_rows_that_no_run_has_are_refused(own):
    table = get(own, "users")
    put(own, "users", table.set_column(0, "second", pa.array([2**31 - 1] * table.num_rows, pa.int32())))
    with pytest.raises(StallmarkError, match=r"own/users is damaged"):
        ask("from users", own)


# Nothing else. ------------------------------------------------------------------------------------------------

STATEMENTS = (
    "", "-- nothing", ";", "select 1; select 2", "select 1; copy (select 1) to '{out}'",
    "copy (select 1) to '{out}'", "copy users to '{out}' (format parquet)", "copy users from '{secret}'",
    "attach '{out}' as other", "attach ':memory:' as other", "detach memory", "use memory",
    "export database '{out}'", "import database '{folder}'", "install httpfs", "load httpfs", "force install httpfs",
    "pragma database_list", "pragma enable_profiling", "set threads = 4", "reset threads", "set variable a = 1",
    "call pragma_version()", "create table mine as select 1", "create view mine as select 1",
    "create secret (type s3)", "create macro f() as 1", "insert into steps from steps", "update steps set users = 1",
    "delete from steps", "drop view steps", "alter table steps rename to other", "truncate steps", "vacuum",
    "checkpoint", "analyze", "begin", "commit", "prepare p as select 1", "execute p", "explain select 1",
    "explain analyze copy (select 1) to '{out}'", "comment on view steps is 'x'",
    "with x as (delete from steps returning run) from x",
    "with x as (insert into steps from steps returning run) from x",
    "with x as (update steps set users = 1) from users",
    "merge into steps using steps s on true when matched then delete",
)  # fmt: skip
SELECTS = (
    "from read_csv('{secret}')", "from read_csv_auto('{secret}')", "from read_text('{secret}')",
    "from read_blob('{secret}')", "from read_json('{secret}')", "from read_json_auto('{secret}')",
    "from read_json_objects('{secret}')", "from read_ndjson('{secret}')", "from read_parquet('{parquet}')",
    "from parquet_scan('{parquet}')", "from parquet_metadata('{parquet}')", "from parquet_schema('{parquet}')",
    "from parquet_file_metadata('{parquet}')", "from parquet_kv_metadata('{parquet}')", "from sniff_csv('{secret}')",
    "from glob('{folder}/*')", "from '{secret}'", "from '{parquet}'", "from \"{secret}\"", "select * from '{folder}/*'",
    "select getenv('HOME')", "from duckdb_secrets()", "from which_secret('s3://x', 's3')", "from duckdb_settings()",
    "from duckdb_extensions()", "from query('select 1')", "from query_table('users')",
    "from json_execute_serialized_sql(json_serialize_sql('select 1'))", "from pragma_database_size()",
    "from enable_logging(storage := 'file', storage_path := '{out}')", "from checkpoint()", "from force_checkpoint()",
    "from arrow_scan(1, 2, 3)", "from pandas_scan(1)", "from READ_TEXT('{secret}')",
    "from system.main.read_text('{secret}')",
    "with a as (from read_text('{secret}')) from a",
    "select (select content from read_text('{secret}'))",
    "select 1 where exists (from read_text('{secret}'))",
    "select 1 union all select size from read_text('{secret}')",
    "select u.run from users u, lateral (from read_text('{secret}'))",
    "from users positional join read_text('{secret}')",
    "select [x for x in [1] if (select count(*) > 0 from read_text('{secret}'))]",
    "select 1 order by (select size from read_text('{secret}'))", "from variable",
    "select getvariable('a') from nowhere",
    "pivot read_text('{secret}') on filename in ('a') using count(*)", "describe from read_text('{secret}')",
    "summarize from read_csv('{secret}')", "describe read_text('{secret}')",
)  # fmt: skip
variable = pa.table({"a": [1]})


@pytest.fixture
def places(tmp_path, run) -> dict[str, Path]:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nxyzzy\n")
    return {"out": tmp_path / "out", "secret": secret, "folder": tmp_path, "parquet": run / "users.parquet"}


@pytest.mark.parametrize("statement", STATEMENTS + SELECTS)
def test_what_is_not_a_select_over_tables_is_a_sentence_and_touches_nothing(statement, places, run, tmp_path):
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with pytest.raises(StallmarkError) as refused:
        ask(statement.format(**places), run)
    words = str(refused.value)
    assert words.endswith(".") and "\n" not in words and "xyzzy" not in words, words
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_kind_of_a_statement_is_named(statement, places, run):
    with pytest.raises(StallmarkError, match=r"^(Only one SELECT is answered, not |The statement is not answered: )"):
        ask(statement.format(**places), run)


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to '{out}'", "attach '{out}' as other", "export database '{out}'", "install httpfs",
        "load httpfs", "set threads = 4", "set enable_external_access = true", "set temp_directory = '{folder}'",
        "from read_text('{secret}')", "from read_csv('{secret}')", "from '{secret}'", "from read_parquet('{parquet}')",
        "from glob('{folder}/*')", "select getenv('HOME')", "from variable", "create persistent secret (type s3)",
    ],
)  # fmt: skip
def test_the_connection_refuses_as_well(statement, places, tmp_path):
    """A second wall: whatever the parser may let pass."""
    connection = sql._connected(tmp_path / "spill")
    with pytest.raises(duckdb.Error):
        assert connection.execute(statement.format(**places)).fetchall() == []
        raise duckdb.Error("nothing was there")
    assert {path.name for path in tmp_path.iterdir()} <= {"secret.csv", "spill"}


@pytest.mark.parametrize(
    "statement",
    [
        "from users limit 1", "table users limit 1", "values (1)", "describe users", "summarize steps", "show tables",
        "with a as (from users) select count(*) from a", "from generate_series(1, 3)", "select unnest([1, 2])",
        "select count(*) filter (second >= 3) from users", "from users select second limit 1", "select 1;",
        "from information_schema.tables", "pivot steps on run in ('a') using count(*)",
        "select list(second order by second desc) from users",
    ],
)  # fmt: skip
def test_a_select_of_whatever_form_is_answered(statement, run):
    assert ask(statement, run)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "from no_such",
            r"The records have no table no_such: choose one of .*server_io, steps, transaction_io, transactions, ",
        ),
        ("select no_such from users", r'"no_such" not found .* \(line 1, at “no_such from users”\)\.$'),
        ("select 1\nfrm users", r"syntax error.* \(line 2, at “(frm )?users”\)\.$"),
        ("select 1 +", r"^The statement is not answered: "),
        ("with x as (delete from steps returning run) from x", r"^Only one SELECT is answered, not DELETE: "),
        ("-- a\n install httpfs", r"^Only one SELECT is answered, not INSTALL: "),
        ("copy(select 1) to 'x'; truncate steps; (select 1)", r"not COPY, TRUNCATE, SELECT: "),
        ("with a as (select 1) insert into steps from a", r"not INSERT: "),
        ("select second / 'x' from users", r"^The statement is not answered: .*\.$"),
        ("select ?", r"^The statement is not answered: .*\.$"),
        ("select error('no')", r"^The statement is not answered: .*no.*\.$"),
    ],
)
def test_a_mistake_is_a_sentence(statement, words, run):
    with pytest.raises(StallmarkError, match=words) as refused:
        ask(statement, run)
    assert "\n" not in str(refused.value)


def test_the_memory_is_limited_and_what_was_spilled_is_removed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sql, "MEMORY", "60MiB")
    numbers = "range(3_000_000) numbers(n)"
    with answer([Record(run)], f"select n, repeat(n::text, 3) text from {numbers} order by hash(n), text") as answered:
        assert next(answered.rows) and any(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert not list(tmp_path.iterdir())
    with pytest.raises(StallmarkError, match=r"^The statement is not answered: .*memory"):
        ask(f"select list(repeat(n::text, 9)) from {numbers.replace('3_000', '30_000')}", run)
    assert not list(tmp_path.iterdir())


def test_it_ends_when_it_is_asked_to_stop(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with signals_as_before():
        stopping.listen()
        main = threading.main_thread().ident
        pressed = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
        pressed.start()
        with pytest.raises(stopping.StopSignal):
            ask("select sum(hash(a.range, b.range)) from range(10_000_000) a, range(10_000_000) b", run)
        pressed.cancel()
    assert not list(tmp_path.iterdir())
    assert not [one for one in threading.enumerate() if one.name.startswith("hearing")]


def test_two_modules_import_duckdb():
    """The other one checks a server's answers and reads no record."""
    assert _importers(["src/stallmark", "transactions", "loaders", "driver", "schema", "scenarios"]) == {
        "src/stallmark/record/sql.py", "transactions/warehouse/oracle.py"
    }  # fmt: skip


def _importers(rooms: Sequence[str]) -> set[str]:
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    return {
        str(path.relative_to(ROOT))
        for path in files
        if not path.parent.is_symlink() and "import duckdb" in path.read_text(encoding="utf-8")
    }
