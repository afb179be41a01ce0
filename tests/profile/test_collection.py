"""Collecting: what is refused, what is kept, and what never lands in the folder. The server is simulated, and time."""

import errno
import os
import shutil
from itertools import pairwise

import pytest
from support.mssql_server import rows
from support.production import DAY, HOUR, MIDNIGHT, Production, direct
from support.small_disks import fill, small_disk
from support.tds.answers import Rows

from stallmark.analysis.profile import summarise_profile
from stallmark.analysis.profile_intervals import intervals_of, samples_of
from stallmark.analysis.profile_rates import Measure, ProfileKind
from stallmark.cli.output import err
from stallmark.errors import StallmarkError
from stallmark.profile import command
from stallmark.profile.collection import Collection, CollectionProgress
from stallmark.record.files import exclusive_folder
from stallmark.record.profile import read_profile, write_profile
from stallmark.record.profile_tables import Profile, ProfileWriter, last_sample

pytestmark = pytest.mark.thorough

TEN_MINUTES = 600.0


def collected(
    production, monkeypatch, folder, seconds=TEN_MINUTES, *, anonymous=False, show=lambda progress: None, wait=None
):
    source = direct(production, monkeypatch, anonymous=anonymous)
    Collection(source, folder, seconds, anonymous, production.clock(wait), show).run()
    return folder


def test_samples_are_taken_at_the_interval_and_at_the_end_and_do_not_drift(tmp_path, monkeypatch):
    folder = collected(Production(), monkeypatch, tmp_path / "p")
    samples = samples_of(folder)
    assert len(samples.number) == 42  # at once, at every whole interval from 5 s on, and at the end
    assert samples.taken_s[-1] - samples.taken_s[0] == pytest.approx(TEN_MINUTES, abs=0.1)
    assert samples.seen.all() and not len(samples.restarts)
    [session] = read_profile(folder).sessions
    assert session.end == "complete" and not list(folder.glob("*.arrows"))


def test_rows_that_are_as_they_were_are_not_stored_and_count_nothing(tmp_path, monkeypatch):
    """A state that never changes has one row, and is known in every interval."""
    folder = collected(Production(), monkeypatch, tmp_path / "p")
    counters = Profile(folder).table("server_counters").to_pylist()
    assert len([row for row in counters if row["counter"] == "connections"]) == 1
    connections = intervals_of(folder).column("server.connections").tolist()
    assert set(connections) == {180.0} and len(connections) == 41


def test_the_same_command_goes_on_in_the_folder_until_the_time_is_over(tmp_path, monkeypatch):
    production = Production()

    def stop(seen):
        if production.now > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collected(production, monkeypatch, tmp_path / "p", show=stop)
    production.now = 300.0
    folder = collected(production, monkeypatch, tmp_path / "p")
    assert [one.end for one in read_profile(folder).sessions] == ["stopped", "complete"]
    summary = summarise_profile(folder)
    assert summary.end - summary.begin == pytest.approx(TEN_MINUTES, abs=1)
    [gap] = summary.unseen
    assert gap.begin - MIDNIGHT == pytest.approx(200, abs=20) and gap.end - MIDNIGHT == pytest.approx(300, abs=1)
    assert gap.reason is None
    with pytest.raises(StallmarkError, match="so it is complete"):
        collected(production, monkeypatch, folder)
    collected(production, monkeypatch, folder, TEN_MINUTES + 60)  # a longer time goes on


def test_a_kill_keeps_every_sample_and_a_sample_cut_in_the_middle_does_no_harm(tmp_path, monkeypatch):
    production = Production()
    folder = tmp_path / "p"

    def snapshot(seen):
        if production.now > 300 and not (tmp_path / "killed").exists():
            shutil.copytree(folder, tmp_path / "killed")

    collected(production, monkeypatch, folder, show=snapshot)
    killed = tmp_path / "killed"
    stream = killed / "samples-001.arrows"
    whole = last_sample(killed)
    os.truncate(stream, stream.stat().st_size - 40)
    sums = stream.with_suffix(".sums")
    os.truncate(sums, sums.stat().st_size - 20)  # the checksum of a sample comes after it
    assert last_sample(killed) == whole - 1  # the others of that sample are there, and count for nothing
    production.now = 330.0
    collected(production, monkeypatch, killed)
    assert [one.end for one in read_profile(killed).sessions] == ["killed", "complete"]
    numbers = Profile(killed).table("samples").column("sample").to_pylist()
    assert numbers == sorted(set(numbers)) and whole not in numbers
    reads = summarise_profile(killed).means[Measure.READS]
    assert reads == pytest.approx(summarise_profile(folder).means[Measure.READS], rel=0.01)


def test_a_short_loss_is_no_gap_and_a_long_one_is_said_with_its_reason(tmp_path, monkeypatch):
    production = Production(outages=[(100, 110), (300, 420)])
    folder = collected(production, monkeypatch, tmp_path / "p")
    [gap] = read_profile(folder).gaps
    assert "link failure" in gap.reason
    assert [one.reason for one in summarise_profile(folder).unseen] == [gap.reason]
    assert production.logins < 20  # it waits longer and longer


@pytest.mark.parametrize("odd", [lambda row: [], lambda row: [row, row], lambda row: [row[:2]]])
def test_an_odd_answer_is_a_gap_and_not_the_end(tmp_path, monkeypatch, odd):
    production, answer = Production(), Production.answer

    def sometimes(self) -> list:
        first, *others = answer(self)
        return [Rows(first.columns, odd(*first.rows)) if 200 < self.now < 320 else first, *others]

    monkeypatch.setattr(Production, "answer", sometimes)
    folder = collected(production, monkeypatch, tmp_path / "p")
    [gap] = read_profile(folder).gaps
    assert "not answer with the one row" in gap.reason
    assert [one.end for one in read_profile(folder).sessions] == ["complete"]


def test_facts_that_a_server_does_not_tell_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(Production, "_facts", lambda self: [rows(["name"])])
    with pytest.raises(StallmarkError, match=r"The server's facts could not be read \(the server did not answer"):
        collected(Production(), monkeypatch, tmp_path / "p")


def test_another_servers_folder_is_refused_and_a_failover_is_not(tmp_path, monkeypatch):
    production = Production(names=[(0.0, "SQL-A"), (700.0, "SQL-B")])
    folder = collected(production, monkeypatch, tmp_path / "p")
    production.now = 800.0
    collected(production, monkeypatch, folder, HOUR)  # the same address, another server
    assert [one.name for one in read_profile(folder).servers] == ["SQL-A", "SQL-B"]
    production.now = 900.0
    production.names = [(0.0, "SQL-C")]
    source = direct(production, monkeypatch)
    source.address = "other.example.com:1433/master"
    with pytest.raises(StallmarkError, match="another server"):
        Collection(source, folder, 2 * DAY, clock=production.clock()).run()


def test_a_folder_of_something_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mother.txt").write_text("Dear")
    with pytest.raises(StallmarkError, match="is not a profile"):
        collected(Production(), monkeypatch, tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["to-mother.txt"]


def test_a_report_goes_by_one_look_at_the_samples_while_more_come(tmp_path, monkeypatch):
    folder = collected(Production(), monkeypatch, tmp_path / "p")
    made = read_profile(folder)
    write_profile(folder, made.changed(sessions=[one.changed(cpu_s=1.0) for one in made.sessions]))
    looked: list[str] = []
    whole = Profile.table

    def growing(profile, name):
        table = whole(profile, name)
        looked.append(name)
        return table.slice(0, table.num_rows - 1) if looked.count(name) == 1 else table

    monkeypatch.setattr(Profile, "table", growing)
    found = summarise_profile(folder)
    assert looked.count("samples") == 1
    assert ProfileKind.COST in {one.kind for one in found.cautions}


def test_names_and_no_names_are_not_mixed(tmp_path, monkeypatch):
    production = Production()
    folder = collected(production, monkeypatch, tmp_path / "p", anonymous=True)
    with pytest.raises(StallmarkError, match="give --anonymous again"):
        collected(production, monkeypatch, folder, HOUR)


@pytest.mark.skipif(os.name != "posix", reason="locks of folders are POSIX's")
def test_two_processes_do_not_collect_into_one_folder(tmp_path, monkeypatch):
    with exclusive_folder(tmp_path, taken="It is held."), pytest.raises(StallmarkError, match="Another process"):
        collected(Production(), monkeypatch, tmp_path)


def test_an_anonymous_profile_names_nobody(tmp_path, monkeypatch):
    production = Production(outages=[(100, 200)])
    folder = collected(production, monkeypatch, tmp_path / "p", anonymous=True)
    every = b"".join(path.read_bytes() for path in folder.iterdir())
    tables = [row for name in ("file_counters", "samples") for row in Profile(folder).table(name).to_pylist()]
    for name in ("Sales", "Web", "SQL-A", "db.example.com", "watcher", "secret", "msdb"):
        assert name.encode() not in every and name not in str(tables), name
    assert {row["database"] for row in Profile(folder).table("file_counters").to_pylist()} >= {
        "database 5",
        "database 6",
    }
    assert summarise_profile(folder).manifest.server.name is None


def test_a_password_is_nowhere_even_where_an_error_has_it(tmp_path, monkeypatch):
    source = direct(Production(), monkeypatch)
    assert "secret" not in source.cleaned("login failed for pwd=secret; password secret")


def test_a_login_without_the_right_is_told_which_it_needs(tmp_path, monkeypatch):
    from support.mssql_server import answering

    from stallmark.profile.command import source_for

    production = Production(forbidden=True)
    with answering(production.script(), encryption="none") as server:
        url = f"mssql://watcher:secret@127.0.0.1:{server.port}/master?Encrypt=no"
        with pytest.raises(StallmarkError, match="GRANT VIEW SERVER STATE"):
            Collection(source_for(url, anonymous=False), tmp_path / "p", HOUR, clock=production.clock()).run()
    assert not (tmp_path / "p").exists()


def test_a_server_without_management_views_is_told_what_to_profile(tmp_path):
    from support.mssql_server import answering, says_it_is
    from support.tds.script import Script

    from stallmark.profile.command import source_for

    script = Script(databases=["master"])
    says_it_is(script, banner="Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8")
    with answering(script, encryption="none") as server:
        url = f"mssql://watcher:secret@127.0.0.1:{server.port}/master?Encrypt=no"
        with pytest.raises(StallmarkError, match=r"Babelfish has none of .* postgresql://"):
            Collection(source_for(url, anonymous=False), tmp_path / "p", HOUR).run()
    assert not (tmp_path / "p").exists()


def test_through_the_driver_a_cut_connection_is_opened_again_and_one_text_is_sent(tmp_path):
    from support.mssql_server import answering

    from stallmark.profile.command import source_for

    production = Production(outages=[(100, 200)], names=[(0.0, "SQL-A"), (150.0, "SQL-B")], restarts=[150.0])
    with answering(production.script(), encryption="none") as server:
        url = f"mssql://watcher:secret@127.0.0.1:{server.port}/master?Encrypt=no"
        Collection(source_for(url, anonymous=False), tmp_path / "p", 400.0, clock=production.clock()).run()
    assert len(production.asked) == 1  # so it is one plan in the server's cache
    found = summarise_profile(tmp_path / "p")
    assert [one.restart for one in found.unseen] == [False]  # another server is no restart
    assert ProfileKind.OTHER_SERVER in {one.kind for one in found.cautions}
    assert found.manifest.server.product == "SQL Server" and found.manifest.server.cores == 16


def test_a_disk_that_fills_has_room_for_why_the_session_ended(tmp_path, monkeypatch):
    production = Production()
    write = ProfileWriter._write

    def fills(self, name, rows):
        if production.now > 200:
            fill(tmp_path / "disk")
        write(self, name, rows)

    monkeypatch.setattr(ProfileWriter, "_write", fills)
    with small_disk(tmp_path / "disk", 32) as disk:
        with pytest.raises(StallmarkError, match="No space left on device"):
            collected(production, monkeypatch, disk / "p")
        [session] = read_profile(disk / "p").sessions
        assert (session.end, session.reason) == ("failed", "No space left on device") and session.ended


def test_a_folder_that_was_taken_away_ends_the_collection_and_goes_on_where_it_is_put_back(tmp_path, monkeypatch):
    production, folder = Production(), tmp_path / "p"

    def take_away(seen):
        if production.now > 200 and folder.exists():
            folder.rename(tmp_path / "elsewhere")

    with pytest.raises(StallmarkError, match=r"p could not be written \(No such file or directory\)\. If it was moved"):
        collected(production, monkeypatch, folder, show=take_away)
    assert not folder.exists() and production.now < 300
    (tmp_path / "elsewhere").rename(folder)
    collected(production, monkeypatch, folder)
    assert [session.end for session in read_profile(folder).sessions] == ["killed", "complete"]
    assert summarise_profile(folder).seen_s == pytest.approx(TEN_MINUTES, abs=40)


def test_a_full_disk_is_one_sentence_and_the_folder_goes_on(tmp_path, monkeypatch):
    production = Production()
    write = ProfileWriter._write

    def full(self, name, rows):
        if production.now > 200:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, name, rows)

    monkeypatch.setattr(ProfileWriter, "_write", full)
    with pytest.raises(StallmarkError, match="No space left on device"):
        collected(production, monkeypatch, tmp_path / "p")
    monkeypatch.setattr(ProfileWriter, "_write", write)
    folder = collected(production, monkeypatch, tmp_path / "p")
    assert [one.end for one in read_profile(folder).sessions] == ["failed", "complete"]
    assert summarise_profile(folder).seen_s == pytest.approx(TEN_MINUTES, abs=40)


# The progress in a log: lines that do not go by how long the machine has been up


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
