"""A small folder of each kind of record, for tests of what happens to damaged ones."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stallmark.attach.attach import Request, Wanted, attach
from stallmark.probe.record import ProbeManifest, append_step, begin_record
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted as WantedProfile
from stallmark.record.profile import ProfiledServer, ProfileManifest, Session
from stallmark.record.profile_tables import ProfileWriter
from stallmark.record.reader import Record
from stallmark.scenarios.read import read_scenario
from stallmark.sizing.demand import demand_of
from support.manifests import a_manifest, changed
from support.probes import of_disks, probe
from support.recorders import Moment, perfmon_csv
from support.sizings import write_sizing_of
from support.synthetic import Brokerage, Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run
from support.synthetic_queries import make_query_run

SHORT = Truth(warm_up_s=3, measured_s=12, failed_per_second=2)


def experiment(folder: Path) -> None:
    """Two variants of a scenario that is shipped, with measurements attached to one."""
    scenario = read_scenario("buffer-pool").contents.model_dump(mode="json", exclude_unset=True)
    for number, (variant, tps) in enumerate((("5 %", 300), ("20 %", 400)), 1):
        run = folder / f"0{number}"
        make_run(run, replace(SHORT, tps=tps, variant=variant, sequence=number, seed=number))
        changed(run, scenario=scenario)
    file = folder / "array.csv"
    rows = [f"2025-11-21T10:01:{second:02d}Z,{second + 1},{second / 7}" for second in range(15)]
    file.write_text("\n".join(["time,IOPS,read ms", *rows]))
    attach([Record(folder / "01")], Wanted(file), Request())
    file.unlink()


def killed(folder: Path) -> None:
    """A run whose process was killed."""
    make_run(folder / "01", replace(SHORT, cut_at=12))


def brokerage(folder: Path) -> None:
    make_run(folder / "01", replace(SHORT, measured_s=20, arrivals="poisson", brokerage=Brokerage()), "user-ramp")


def loads(folder: Path) -> None:
    """Users of two kinds, raw I/O and queries, alone and together."""
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}, (900.0, 300.0), (0.5, 0.2))
    make_loads_run(folder / "01", steps)


def queries(folder: Path) -> None:
    make_query_run(folder / "01", seconds={"Q1": 2.0})
    make_query_run(folder / "02", variant="flash", sequence=2, plans={"Q9": "other"}, failed={"Q3": "timeout"})


def probed(folder: Path) -> None:
    steps = of_disks(4, 5)
    made = probe(*steps)
    plan = {"seconds": 10.0, "steps": [{"pattern": one.pattern.name, "outstanding": one.outstanding} for one in steps]}
    manifest = a_manifest(ProbeManifest, probe=replace(made, steps=()), probe_plan=plan, experiment="p", sequence=1)
    writer = begin_record(folder / "01", manifest)
    for step in steps:
        append_step(writer, step)
    writer.close()


def imported(folder: Path) -> None:
    """A profile of what Perfmon recorded."""
    devices = [{"D:": (n * 30.0,) * 6, "L:": (n * 60.0,) * 6} for n in range(9)]
    moments = [Moment(1772445600.0 + 15 * n, counted, n, n * 10) for n, counted in enumerate(devices)]
    file = folder / "perfmon.csv"
    file.write_text(perfmon_csv(moments))
    import_profile([file], folder / "profile", WantedProfile(classes={"D:": "data", "L:": "log"}))
    file.unlink()


def collected(folder: Path, *, closed: bool = True) -> None:
    """A profile of a server, in two sessions; of the second only the streams are there where it was not closed."""
    place = folder / "profile"
    place.mkdir()
    sessions = [Session(started="2026-03-02T10:00:00+00:00"), Session(started="2026-03-02T10:20:00+00:00")]
    manifest = ProfileManifest(
        source="server", started=sessions[0].started, interval_s=15, planned_s=3600,
        servers=(ProfiledServer(engine="mssql", product="SQL Server", cores=8),),
    )  # fmt: skip
    for number, session in enumerate(sessions, 1):
        manifest = manifest.changed(sessions=(*manifest.sessions, session))
        writer = ProfileWriter(place, manifest, number)
        writer.update()
        for sample in range(40 * number, 40 * number + 20):
            for table, rows in _sample(sample, number, 1772445600.0 + 15 * (sample - 40) + 600 * (number - 1)).items():
                writer.append(table, rows)
        if closed or number == 1:
            writer.close()
            ended = session.changed(ended="2026-03-02T10:40:00+00:00", end="complete")
            writer.update(sessions=(*manifest.sessions[:-1], ended))
        manifest = writer.manifest


def collecting(folder: Path) -> None:
    collected(folder, closed=False)


def sizing(folder: Path) -> None:
    """A profile, and a candidate that was measured for it."""
    imported(folder)
    demand = demand_of(folder / "profile")
    write_sizing_of(folder / "candidate", demand, stand_in=(1.25, 1.38), cost=42_000, memory_bytes=64 << 30)


def _sample(number: int, session: int, clock: float) -> dict[str, list[tuple]]:
    reads = number * 450
    return {
        "samples": [(number, session, clock, clock, clock, 0.01, "start 1", 1, number)],
        "file_counters": [
            (number, "a/data", "a", "data", "handle 1", reads, reads * 8192, reads * 3.5, reads, 8192, 1.0, 10**9),
            (number, "a/log", "a", "log", "handle 2", 3, 4096, 0.5, reads * 2, reads * 4096, reads * 0.5, 10**8),
        ],
        "server_counters": [(number, "transactions", "start 1", reads * 2), (number, "connections", "start 1", 12)],
        "wait_counters": [(number, "WRITELOG", "wal", "start 1", reads, reads * 2, reads)],
        "sessions_seen": [],
    }  # fmt: skip


KINDS: tuple[Callable[[Path], None], ...] = (
    experiment, killed, brokerage, loads, queries, probed, imported, collected, collecting, sizing,
)  # fmt: skip
