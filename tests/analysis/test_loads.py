"""Runs of several loads, from records of known truth: every figure and finding with a case in which it is not there."""

from dataclasses import replace

import pytest
from support.findings import facts_of
from support.manifests import a_manifest
from support.searches import level as level_seen
from support.synthetic import Truth, make_run
from support.synthetic_loads import STEP_S, LoadsStep, alone_and_together, in_cells, make_loads_run
from support.wording import findings_in

from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.ceiling import CeilingKind
from stallmark.analysis.compare.summary import PairKind, Verdict
from stallmark.analysis.experiment import common_kind, summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.analysis.load_steps import LoadsKind, _level_of_raw, count_drives, few_done
from stallmark.analysis.loads import LoadsSummary, summarise_loads
from stallmark.analysis.read import server_io
from stallmark.analysis.read.load_io import RawFigures
from stallmark.analysis.read.times import rows_by_sample
from stallmark.analysis.service_level import LevelOutcome
from stallmark.analysis.validity import ValidityKind
from stallmark.errors import StallmarkError
from stallmark.record.manifest import FILE, read_manifest
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.manifest.workload import Load, Search
from stallmark.record.reader import LoadRecord, Record, find_records
from stallmark.report.loads import picture_of_loads
from stallmark.report.text import sentence
from stallmark.scenarios.load import RawLoad

pytestmark = pytest.mark.thorough

STEPS = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}, scan=(900.0, 300.0), reports=(0.5, 0.25))
SSD = {"name": "sdb", "model": "An SSD"}


def kinds(found: LoadsSummary) -> set:
    return {one.kind for one in found.whole.findings}


def finding(found: LoadsSummary, kind: LoadsKind):
    [one] = [one for one in found.whole.findings if one.kind is kind]
    return one


@pytest.fixture(scope="module")
def blender(tmp_path_factory) -> LoadsSummary:
    folder = tmp_path_factory.mktemp("blender")
    for number, (variant, factor) in enumerate([("disks", 1.0), ("cache", 1.6)] * 3):
        more = 1 + 0.01 * number
        steps = alone_and_together(
            {"mail": (60.0 * more, 30.0 * factor), "bank": (200.0, 80.0 * factor * more)},
            scan=(900.0, 300.0 * factor),
            reports=(0.5, 0.25 * factor),
        )
        make_loads_run(
            folder / str(number), steps, variant, repeat=number // 2 + 1, sequence=number,
            limits_ms={"mail": 20, "bank": 5, "scan": 30},
        )  # fmt: skip
    return summarise_loads(find_records([folder]))


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> Record:
    return Record(make_loads_run(tmp_path_factory.mktemp("once") / "run", STEPS))


@pytest.fixture(scope="module")
def single(once) -> LoadsSummary:
    return summarise_loads([once])


@pytest.fixture(scope="module")
def cells(tmp_path_factory) -> LoadsSummary:
    rates = {k: {"mail": 60.0 * k, "bank": 100.0 * k**0.5, "scan": 800.0} for k in (1, 2, 4)}
    folder = make_loads_run(
        tmp_path_factory.mktemp("cells") / "run", in_cells(rates), limits_ms={"mail": 20, "scan": 30}
    )
    return summarise_loads([Record(folder)])


def at(found: LoadsSummary, load: str, step: str, variant: str = "disks"):
    [point] = [p for p in found.points if (p.first.load, p.first.step, p.first.variant) == (load, step, variant)]
    return point


def test_every_load_has_its_own_figures(blender):
    assert at(blender, "mail", "mail alone").rate == pytest.approx(60 * 1.02, rel=0.02)
    assert at(blender, "bank", "together", "cache").rate == pytest.approx(128 * 1.03, rel=0.02)
    assert at(blender, "mail", "together").mean(lambda one: one.mean_ms) == pytest.approx(10 / 30 * 1000, rel=0.03)
    scan = at(blender, "scan", "together")
    assert scan.rate == 300 and scan.mean(lambda one: one.mb_per_s) == pytest.approx(300 * 0.262144)
    assert at(blender, "reports", "reports alone").rate == pytest.approx(12 / 22 * 3600)


def test_runs_of_two_experiments_are_told_apart_though_their_folders_have_one_name(tmp_path):
    for number, (alone, together) in enumerate([(200.0, 100.0), (400.0, 100.0)], 1):
        steps = alone_and_together({"mail": (60.0, 30.0), "bank": (alone, together)})
        folder = tmp_path / str(number) / "01-disks"
        make_loads_run(folder, steps, sequence=number, experiment=f"e{number}")
    found = summarise_loads(find_records([tmp_path / "1", tmp_path / "2"]))
    rates = [one.rate for one in at(found, "bank", "bank alone").runs]
    assert rates == [pytest.approx(200, rel=0.02), pytest.approx(400, rel=0.02)]
    [cost] = [one for one in found.penalties if one.load == "bank"]
    assert cost.runs == 2 and cost.rate.ratio == pytest.approx((0.5 * 0.25) ** 0.5, rel=0.02)


def test_a_load_at_rest_has_no_figures(blender):
    assert {p.first.load for p in blender.points if p.first.step == "mail alone"} == {"mail"}


def test_reads_are_those_of_the_loads_own_sessions(blender):
    assert at(blender, "bank", "bank alone").mean(lambda one: one.reads_per_s) == pytest.approx(400, rel=0.03)
    assert at(blender, "mail", "together").mean(lambda one: one.reads_per_s) == pytest.approx(60, rel=0.03)


def test_a_load_beside_others_is_held_against_itself_alone_run_by_run(blender):
    cost = {(one.variant, one.load): one for one in blender.penalties}
    bank = cost["disks", "bank"]
    assert bank.runs == 3 and bank.rate.ratio == pytest.approx(0.4 * 1.02, rel=0.02)
    assert bank.rate.low < bank.rate.ratio < bank.rate.high
    assert bank.latency.ratio == pytest.approx(1 / bank.rate.ratio, rel=0.02)
    assert cost["cache", "mail"].rate.ratio > cost["disks", "mail"].rate.ratio
    assert cost["disks", "scan"].rate.ratio == pytest.approx(1 / 3, rel=0.01)


def test_one_run_has_no_interval(single):
    cost = single.penalties
    assert {one.load for one in cost} == {"mail", "bank", "scan", "reports"}
    assert all(one.rate.low is None and one.runs == 1 for one in cost)


def test_what_the_loads_cost_each_other_is_the_answer(blender, single, cells):
    assert blender.whole.answer.kind is LoadsKind.TOGETHER
    assert [name for name, _ in blender.whole.answer.facts["variants"]] == ["disks", "cache"]
    assert single.whole.answer.facts["variants"][0][0] is None
    assert LoadsKind.TOGETHER not in kinds(cells)


def test_variants_that_were_repeated_have_a_verdict_for_each_load(blender, single):
    found = finding(blender, LoadsKind.VERDICTS)
    assert [(name, verdict) for name, verdict, *_ in found.facts["loads"]] == [("mail", "better"), ("bank", "better")]
    assert found.facts["step"] == "together"
    assert LoadsKind.VERDICTS not in kinds(single)


def test_a_load_in_doubt_is_left_out_of_what_the_others_cost_it(tmp_path):
    folder = make_loads_run(tmp_path / "run", STEPS, raw_ends_s=110)
    found = summarise_loads([Record(folder)])
    scan = next(one for one in found.penalties if one.load == "scan")
    assert scan.left_out == 1 and scan.doubtful
    assert found.whole.answer.facts["in_doubt"] == ["scan"]
    assert LoadsKind.RAW_ENDED in kinds(found)
    assert "scan" not in [load for load, *_ in found.whole.answer.facts["variants"][0][1]]


def test_a_rate_of_a_few_transactions_is_in_doubt(blender):
    step = blender.loads["bank"].steps[0]
    few = replace(step, throughput=replace(step.throughput, committed=5, tps=5 / step.interval.measured_s))
    assert [one.facts["done"] for one in few_done(few)] == [5] and few_done(step) == []


def test_a_raw_load_that_ran_to_the_end_did_not_end_early(blender, cells):
    assert LoadsKind.RAW_ENDED not in kinds(blender) | kinds(cells)


def test_scaling_is_against_the_fewest_cells(cells):
    scaling = {(step.cells, one.load): one.scaling for step in cells.cells for one in step.loads}
    assert scaling[4, "mail"] == pytest.approx(1.0, rel=0.02)
    assert scaling[4, "bank"] == pytest.approx(0.5, rel=0.02)
    assert scaling[2, "scan"] == pytest.approx(0.5)
    assert cells.whole.answer.kind is LoadsKind.CELLS and cells.whole.answer.facts["cells"] == [1, 4]


def test_steps_without_cells_have_no_scaling(blender):
    assert blender.cells == [] and not {LoadsKind.CELLS, LoadsKind.HOST} & kinds(blender)


def test_cells_say_how_busy_host_and_drives_were(cells):
    step = cells.cells[-1]
    assert step.whole.mean(lambda one: one.cpu_busy_share) == pytest.approx(0.35, abs=0.01)
    assert step.whole.mean(lambda one: one.memory_share) == pytest.approx(0.5)
    per_drive, iops = (step.whole.mean(of) for of in (lambda one: one.iops_per_drive, lambda one: one.iops))
    assert per_drive == pytest.approx(iops / 8)
    assert finding(cells, LoadsKind.HOST).severity == "caution"


def test_a_host_that_hardly_works_is_no_caution(tmp_path):
    truth = Truth(noise=0.0, host_cpu=0.05, foreign_reads_per_second=0.0)
    folder = make_loads_run(tmp_path / "run", in_cells({1: {"bank": 9.0}, 2: {"bank": 17.0}}), truth=truth)
    found = finding(summarise_loads([Record(folder)]), LoadsKind.HOST)
    assert found.facts["cpu_share"] < found.facts["limit_share"] < found.facts["memory_share"]


@pytest.mark.parametrize(
    ("told", "drives"), [("24 x 600 GB 10k", 24), ("8 SSDs", 8), ("RAID 10 of 8", None), (None, None), ("2.4 TB", None)]
)
def test_drives_of_a_real_array_are_known_where_its_description_begins_with_them(told, drives):
    assert count_drives(a_manifest(array={"drives": told})) == drives


def test_a_service_level_is_of_the_loads_own_limit(blender):
    assert at(blender, "mail", "together").level.outcome is LevelOutcome.MEAN_ONLY
    assert at(blender, "bank", "together").level.outcome is LevelOutcome.NOT_MET
    assert at(blender, "scan", "scan alone").level.outcome is LevelOutcome.MET
    assert at(blender, "scan", "together").level.outcome is LevelOutcome.NOT_MET
    assert at(blender, "reports", "together").level is None
    levels = {load: broken for load, _, _, broken, *_ in finding(blender, LoadsKind.LEVELS).facts["loads"]}
    assert levels["mail"] == [] and "disks, together" in levels["scan"]


@pytest.mark.parametrize(
    ("rate", "waiting", "p95", "outcome"),
    [
        (200, 0, 5.0, LevelOutcome.MET),
        (200, 0, 25.0, LevelOutcome.NOT_MET),
        (200, None, 5.0, LevelOutcome.NOT_KNOWN),  # an older record: from issuing
        (200, None, 25.0, LevelOutcome.NOT_MET),
        (None, None, 5.0, LevelOutcome.MET),
    ],
)
def test_times_from_issuing_show_no_level_of_ios_at_a_rate(rate, waiting, p95, outcome):
    asked = ServiceLevelObjective(name="read", read_ms=20, percentile="p95")
    plan = RawLoad.model_validate({"raw": "web"}).plan().changed(rate_iops=rate)
    web = Load(name="web", kind="raw", counts=(1,), raw=plan, service_level=asked)
    level = _level_of_raw(web, RawFigures(10, 2000, 0, 200, 1.6, 2.0, {"p95": p95}, waiting))
    assert level is not None and level.outcome is outcome


def test_without_limits_no_service_level_is_told(single):
    assert LoadsKind.LEVELS not in kinds(single)


def test_reads_that_no_load_accounts_for_are_told(tmp_path, blender):
    steps = [LoadsStep("all loads", {"mail": 60.0, "bank": 200.0})]
    found = summarise_loads([Record(make_loads_run(tmp_path / "run", steps, unaccounted=0.1))])
    told = finding(found, LoadsKind.READS_UNLIKE)
    assert told.facts["share"] == pytest.approx(0.9, abs=0.01)
    assert dict(told.facts["others"])["io worker"] == pytest.approx(0.1, abs=0.01)
    assert LoadsKind.READS_UNLIKE not in kinds(blender)


def test_so_they_are_of_a_later_run(tmp_path):
    steps = [LoadsStep("all loads", {"mail": 60.0, "bank": 200.0})]
    for number, share in enumerate((0.0, 0.1), 1):
        make_loads_run(tmp_path / str(number), steps, repeat=number, sequence=number, unaccounted=share)
    told = finding(summarise_loads(find_records([tmp_path])), LoadsKind.READS_UNLIKE)
    assert told.facts["share"] == pytest.approx(0.9, abs=0.01)


def test_nobody_reads_less_than_nothing(tmp_path):
    steps = [LoadsStep("all loads", {"mail": 60.0, "bank": 200.0})]
    found = summarise_loads([Record(make_loads_run(tmp_path / "run", steps, unaccounted=-0.1))])
    told = finding(found, LoadsKind.READS_UNLIKE)
    assert told.facts["share"] == pytest.approx(1.1, abs=0.02) and told.facts["others"] == []


def test_loads_at_once_without_anything_to_hold_them_against_are_told(tmp_path, blender):
    steps = [LoadsStep("all loads", {"mail": 60.0, "scan": 200.0})]
    found = summarise_loads([Record(make_loads_run(tmp_path / "run", steps))])
    assert [one[:2] for one in found.whole.answer.facts["loads"]] == [["mail", "users"], ["scan", "raw"]]
    assert LoadsKind.AT_ONCE not in kinds(blender)


@pytest.mark.parametrize("load", [None, "bank"])
def test_a_search_over_several_loads_is_told_once_with_the_rates_of_the_level_that_held(tmp_path, load):
    steps = [LoadsStep(f"{level:g}×", {"mail": 60 * level, "bank": 200 * level}) for level in (0.5, 0.6)]
    folder = make_loads_run(tmp_path / "run", steps)
    manifest = read_manifest(folder)
    verdicts = zip(manifest.steps, ((0.5, "held"), (0.6, "broke")), strict=True)
    searched = [step.changed(searched=level_seen(*tried)) for step, tried in verdicts]
    search = Search(load=load, of="load", low=0.5, high=8, tolerance=0.05, outcome="found", holds=0.5, breaks=0.6)
    (folder / FILE).write_text(manifest.changed(search=search, steps=tuple(searched)).model_dump_json())
    found = summarise_loads([Record(folder)])
    assert finding(found, CeilingKind.FOUND).facts["per_s"] == (None if load is None else pytest.approx(100, rel=0.01))
    limits = [one for one in found.whole.findings if one.kind is LoadsKind.OF_LOAD]
    assert [one.facts["load"] for one in limits] == (["mail", "bank"] if load is None else [])
    told = finding(found, LoadsKind.AT_ONCE).facts
    assert told["step"] == "0.5×"
    assert {name: rate for name, _, _, rate, _ in told["loads"]} == pytest.approx({"mail": 30, "bank": 100}, rel=0.01)


def ramp(factor: float) -> list[LoadsStep]:
    return [
        LoadsStep(f"{load} alone: {load} {users}", {load: rate * factor}, alone=load, users={load: users})
        for load in ("bank", "brokerage")
        for users, rate in ((1, 20.0), (20, 60.0), (50, 70.0))
    ]


@pytest.mark.parametrize("factor", [4.0, 1.0])
def test_devices_are_compared_load_by_load_with_the_most_users(tmp_path, factor):
    for number, (name, more) in enumerate([("hdd", 1.0), ("ssd", factor)]):
        make_loads_run(tmp_path / name, ramp(more), name, sequence=number)
    found = summarise_loads(find_records([tmp_path]))
    told = finding(found, LoadsKind.VARIANTS).facts["loads"]
    assert [(load, count, differ) for load, _, count, _, _, _, _, differ in told] == [
        ("bank", 50, factor > 1), ("brokerage", 50, factor > 1)
    ]  # fmt: skip
    assert not {LoadsKind.TOGETHER, LoadsKind.AT_ONCE} & kinds(found)
    assert found.loads["bank"].axis == "users"
    assert len([p for p in found.points if p.first.load == "bank"]) == 6


def test_an_emulated_device_is_not_compared_with_a_real_one(tmp_path):
    make_loads_run(tmp_path / "hdd", ramp(1.0), "hdd")
    make_loads_run(tmp_path / "ssd", ramp(4.0), "ssd", device=SSD, sequence=2)
    assert LoadsKind.VARIANTS not in kinds(summarise_loads(find_records([tmp_path])))


def test_variants_that_must_not_be_compared_are_not_ranked_load_by_load(tmp_path):
    """Three variants, the fastest on a machine with more cores."""
    for number, (name, factor) in enumerate([("hdd", 1.0), ("ssd", 2.0), ("other", 4.0)]):
        make_loads_run(tmp_path / name, ramp(factor), name, sequence=number)
    records = find_records([tmp_path])
    [other] = [record for record in records if record.manifest.variant.name == "other"]
    alike = finding(summarise_loads(records), LoadsKind.VARIANTS).facts["loads"]
    assert {tuple(one[3:5]) for one in alike} == {("other", "hdd")}
    other.manifest = other.manifest.changed(machine=other.manifest.machine.changed(cores=64))
    found = summarise_loads(records)
    told = finding(found, LoadsKind.VARIANTS)
    assert {tuple(one[3:5]) for one in told.facts["loads"]} == {("ssd", "hdd")}
    assert all(one[6] is Verdict.INDICATIVE for one in told.facts["loads"]) and "indicative only" in sentence(told)
    [apart] = facts_of(found.whole.findings, PairKind.NOT_COMPARABLE)
    assert (apart["a"], apart["b"]) == ("hdd", "other")
    assert "other" not in sentence(told) and "other" not in sentence(found.loads["bank"].answer)


def test_its_reader_is_told_that_other_loads_ran(once, blender):
    found = [one for one in summarise([LoadRecord(once, "mail")]).cautions if one.kind is CautionKind.BESIDE]
    assert [(one.facts["steps"], one.facts["sampled"]) for one in found] == [(["together"], True)]
    assert CautionKind.BESIDE not in {one.kind for one in blender.whole.cautions}


def test_steps_beside_unlike_loads_are_not_compared_with_each_other(once):
    found = summarise([LoadRecord(once, "mail")])
    assert found.axis == "variant"
    compared = {ExperimentKind.VARIANTS, ExperimentKind.KNEE, ExperimentKind.MOST_USERS, ExperimentKind.DEVICES}
    assert not compared & {one.kind for one in findings_in(found.findings)}


def test_reads_of_a_raw_load_on_a_real_device_are_not_foreign(tmp_path, once):
    steps = [LoadsStep("all loads", {"bank": 200.0, "scan": 300.0})]
    truth = Truth(noise=0.0, foreign_reads_per_second=0.0)
    folder = make_loads_run(tmp_path / "run", steps, device=SSD, truth=truth, scanned_on_device=True)
    [step] = summarise([LoadRecord(Record(folder), "bank")]).steps
    assert step.storage.foreign_io_share == pytest.approx(0, abs=0.01)
    assert ValidityKind.FOREIGN_IO not in {one.kind for one in step.validity.invalid}


def test_reads_of_other_programs_on_a_real_device_still_are(tmp_path):
    steps = [LoadsStep("all loads", {"bank": 200.0, "scan": 300.0})]
    folder = make_loads_run(tmp_path / "run", steps, device=SSD, scanned_on_device=True, raw_ends_s=0)
    [step] = summarise([LoadRecord(Record(folder), "bank")]).steps
    assert ValidityKind.FOREIGN_IO in {one.kind for one in step.validity.invalid}


# What is refused. ----------------------------------------------------------------------------------------------


def test_runs_of_one_load_and_of_several_are_told_apart(tmp_path, once):
    single = Record(make_run(tmp_path / "run", Truth()))
    assert [common_kind([record]) for record in (once, single)] == ["loads", "transactions"]
    with pytest.raises(StallmarkError, match="name those of one kind"):
        common_kind([single, once])


def test_scaling_is_of_as_many_users_in_each_cell(tmp_path):
    rates = {(1, 10): 100.0, (1, 20): 150.0, (2, 10): 160.0, (2, 20): 300.0}
    steps = [
        LoadsStep(f"{k} cells: bank {users}", {"bank": rate}, cells=k, users={"bank": users})
        for (k, users), rate in rates.items()
    ]
    found = summarise_loads([Record(make_loads_run(tmp_path / "run", steps))])
    scaling = {(step.cells, step.row): step.loads[0].scaling for step in found.cells}
    assert scaling == pytest.approx({(1, 0): 1.0, (1, 1): 1.0, (2, 0): 0.8, (2, 1): 1.0}, rel=0.02)
    panels = picture_of_loads(found).panels
    assert [panel.title for panel in panels] == ["Throughput by cells, bank 10", "Throughput by cells, bank 20"]
    assert [[x for x, _ in panel.lines[0].points] for panel in panels] == [[1, 2], [1, 2]]


def test_queries_at_a_rate_that_never_ended_are_late(tmp_path):
    steps = [LoadsStep("reports alone", {"reports": 0.5}, alone="reports")]
    end_s = float(STEP_S)
    left = [
        (end_s - 8, end_s - 6, end_s + 4),
        (end_s - 7, None, end_s + 1),
        (end_s + 1, None, end_s + 2),
        (0.1, 0.2, 1.0),
    ]

    def reports(name: str, unended):
        found = summarise_loads([Record(make_loads_run(tmp_path / name, steps, late_s=0.0, left=unended))])
        return at(found, "reports", "reports alone").runs[0]

    without, step = reports("without", []), reports("with", left)
    assert (without.late.waited, step.late.waited) == (0, 2) and step.late.due == without.late.due + 2
    assert (step.late.mean_s, step.late.worst_s) == (pytest.approx(4.5), 7), "2 s until it began, 7 s until the end"
    done = without.ended
    assert step.ended == done and without.mean_ms == pytest.approx(4000)
    assert step.mean_ms == pytest.approx((4000 * done + 8000 + 7000) / (done + 2))


@pytest.mark.parametrize("late_s", [None, 0.0, 3.0])
def test_queries_at_a_rate_count_from_when_they_were_due(tmp_path, late_s):
    found = summarise_loads([Record(make_loads_run(tmp_path / "run", STEPS, late_s=late_s))])
    point = at(found, "reports", "together")
    [step] = point.runs
    assert step.open_loop is (late_s is not None) and step.ended == round(step.rate * 22 / 3600)
    if late_s is None:
        assert step.late is None and LoadsKind.QUERIES_WAITED not in kinds(found)
        return
    waited = finding(found, LoadsKind.QUERIES_WAITED).facts
    alone = at(found, "reports", "reports alone").runs[0]
    assert (waited["load"], waited["steps"], waited["waited"]) == ("reports", 2, 4 if late_s else 0)
    due = 12 if late_s else 10  # with those that began as the next step did
    assert (alone.late.due, alone.late.waited, alone.late.worst_s) == (due, waited["waited"], waited["worst_s"])
    assert waited["worst_s"] == waited["mean_s"] == pytest.approx(late_s)
    assert step.mean_ms == pytest.approx(8000 + 1000 * late_s / 3), "two of six that ended had waited"


def test_the_server_s_io_is_read_once(tmp_path, monkeypatch):
    make_loads_run(tmp_path / "1", STEPS, "disks")
    read = []

    def noted(record: Record, table: str, columns: list[str]):
        read.append(table)
        return rows_by_sample(record, table, columns)

    monkeypatch.setattr(server_io, "rows_by_sample", noted)
    found = summarise_loads(find_records([tmp_path]))
    assert read == [server_io.TABLE] and all(step.io for step in found.steps[-1].runs)
