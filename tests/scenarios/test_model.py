"""The meaning of a scenario: its timeline, and what each variant runs with."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.service_level import READY_MADE
from stallmark.collectors import ON_REQUEST
from stallmark.driver.load import WarmUpLimits
from stallmark.driver.pacing import Arrivals
from stallmark.engines.abilities import BackupOptions
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import refuse_what_cannot_be
from stallmark.quantities import PoolSize
from stallmark.scenarios.load import ReadyMade, objective
from stallmark.scenarios.model import Observation, QueryScenario
from stallmark.scenarios.read import locate, read_any_scenario, read_scenario, shipped
from stallmark.scenarios.run_order import run_order
from stallmark.scenarios.variant import Variant
from stallmark.schema.placement import GIB, MIB, Design, File, Filegroup, Settings, TableGroup, TempDb

DATA = "{spindles: 2, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 100}"


def test_steps_follow_each_other_without_a_gap(read):
    plan = read(sets=("users=[1, 10, 5]", "ramp=2s", "warm_up=3s", "measure=10s")).timeline(Variant(name="one"))
    assert [(s.name, s.users) for s in plan.steps] == [("1 users", 1), ("10 users", 10), ("5 users", 5)]
    assert [(s.begin_s, s.ramp_s, s.measure_s, s.end_s) for s in plan.steps] == [
        (0, 2, 5, 15),
        (15, 2, 20, 30),
        (30, 2, 35, 45),
    ]
    assert plan.end_s >= 45


@pytest.mark.parametrize(
    ("overrides", "arrivals"),
    [
        ((), Arrivals()),
        (("think_time={mean: 500ms}",), Arrivals("closed", think_ms=500, think="exponential")),
        (("think_time={mean: 2s, kind: constant}",), Arrivals("closed", think_ms=2000, think="constant")),
        (("arrivals={kind: fixed, rate: 100}",), Arrivals("fixed", rate=100)),
        (("arrivals={kind: poisson, rate: 0.5}",), Arrivals("poisson", rate=0.5)),
    ],
)
def test_arrivals(read, overrides, arrivals):
    assert read(sets=overrides).arrival_plan() == arrivals


def test_a_variant_runs_with_its_own_or_the_scenario_s(read):
    scenario = read(sets=("buffer_pool=10 %", f"variants.0.emulated_array={{wal: {DATA}}}"))
    own, bare = scenario.variants
    assert scenario.pool_of(own) == PoolSize(size_bytes=8 * 2**20)
    assert scenario.pool_of(bare) == PoolSize(share=0.1)
    assert {name: model.spindles for name, model in scenario.emulated_arrays_of(own).items()} == {"wal": 2}
    assert scenario.emulated_arrays_of(bare) is None


def test_a_variant_without_devices_has_those_of_the_scenario(read):
    scenario = read("    emulated_array: bare\n", "")
    assert set(scenario.emulated_arrays_of(scenario.variants[1])) == {"data"}


def test_what_can_be_observed_is_what_some_server_has(read):
    assert read().observe == []
    names = [name for kinds in ON_REQUEST.values() for name in kinds]
    assert read(sets=(f"observe={names}",)).observe == names == list(get_args(Observation))


def test_a_server_without_it_refuses_what_it_is_to_observe(read, tmp_path):
    engine = PostgresEngine("postgresql://nobody@127.0.0.1:1/nowhere")
    for name, message in (
        ("io_latency", "small asks for `observe: io_latency`, which only SQL Server has"),
        ("io_trace", "small asks for `observe: io_trace`, but the I/Os of the embedded PostgreSQL alone can be traced"),
    ):
        with pytest.raises(StallmarkError, match=message):
            refuse_what_cannot_be(
                read(sets=(f"observe=[{name}]", "emulated_array=null", "start_cache=as it is", "reset=continue",
                           "variants=[{name: a}]")), engine, tmp_path,
            )  # fmt: skip


def test_without_any_device_it_is_the_real_one(read):
    scenario = read(sets=("emulated_array=null",))
    assert [scenario.emulated_arrays_of(variant) for variant in scenario.variants] == [None, None]
    assert [scenario.pool_of(variant) is None for variant in scenario.variants] == [False, True]


@pytest.mark.parametrize("name", shipped())
def test_shipped_scenarios_are_right(name):
    scenario = read_any_scenario(name)
    assert scenario.name == name
    assert all((scenario.title, scenario.answers, scenario.needs))
    assert scenario.answers.endswith("?"), "it answers a question"


def test_the_first_scenarios_are_there():
    assert {"buffer-pool", "demo", "user-ramp"} <= set(shipped())
    assert all(locate(name).is_file() for name in shipped())
    assert read_scenario("user-ramp").users == [1, 10, 20, 50, 100]
    shares = [variant.buffer_pool.share for variant in read_scenario("buffer-pool").variants]
    assert len(shares) >= 4 and min(shares) <= 0.05 and max(shares) >= 1


def test_the_demo_is_of_memory_and_of_flash_and_all_of_it_emulated():
    demo = read_scenario("demo")
    assert all(map(demo.emulates, demo.variants))
    least, most = (variant.buffer_pool.share for variant in demo.variants[:2])
    arrays = [variant.emulated_array.data for variant in demo.variants[2:]]
    assert [(one.cache or one.tier).size.share for one in arrays] == [pytest.approx(most - least)] * 2, "the same bytes"
    assert all(variant.buffer_pool.share == least for variant in demo.variants[2:])


def test_the_longer_demo_adds_steps_of_memory():
    demo, longer = read_scenario("demo"), read_scenario("demo-long")
    assert len({variant.buffer_pool.share for variant in longer.variants}) == 3
    assert len(longer.run_order()) > len(demo.run_order()) and all(map(longer.emulates, longer.variants))


def test_what_a_newcomer_runs_after_the_demo_uses_its_database():
    assert read_scenario("demo-long").workload == read_scenario("demo").workload
    readme = (Path(__file__).parents[2] / "README.md").read_text().partition("make demo    #")[2]
    runs = re.findall(r"^stallmark run (\S+)", readme, re.MULTILINE)
    assert read_scenario(runs[0]).workload == read_scenario("demo").workload


def test_an_array_s_experiment_and_its_laptop_s_form_are_the_same_experiment():
    array, emulated = read_scenario("flash-cache-vs-tiering"), read_scenario("flash-emulated")
    assert [one.name for one in array.variants] == [one.name for one in emulated.variants]
    assert (array.users, array.order, array.workload.name) == (emulated.users, emulated.order, emulated.workload.name)
    assert all(map(emulated.emulates, emulated.variants)) and not any(map(array.emulates, array.variants))
    assert all(variant.before for variant in array.variants)
    assert array.probe and array.probe.size.share == 1, "a small file would be answered from the array's memory"


DATABASE = r"""database:
  files: [{path: 'D:\data\bank.mdf', size: 20GiB}, {path: 'E:\data\bank_2.ndf'}]
  filegroups:
    - {name: growing, files: [{path: 'F:\data\growing.ndf', name: grow, size: 2GiB, growth: 0}]}
  log: [{path: 'L:\log\bank_log.ldf', size: 8GiB, growth: 512MiB}]
  tables: [{names: [history], filegroup: growing, compression: page}]
  tempdb: {change_server: true, files: [{path: 'T:\tempdb.mdf'}], log: {path: 'T:\templog.ldf'}}
  recovery: simple
  read_committed_snapshot: on
  snapshot_isolation: off
  compatibility_level: 160
  target_recovery_time: 1min
  delayed_durability: disabled
  page_verify: checksum
  legacy_cardinality_estimation: on
  auto_update_statistics: async
users:"""


def test_how_a_backup_is_written(read):
    text = r"backup: {folder: 'B:\bak', files: 4, compression: off, buffers: 50, transfer_size: 4MiB}" + "\nusers:"
    assert read("users:", text).backup.options() == BackupOptions(r"B:\bak", 4, "off", 50, 4 << 20)
    with pytest.raises(StallmarkError, match=r"backup\.transfer_size must be a multiple of 64KiB, not .100KiB"):
        read("users:", "backup: {transfer_size: 100KiB}\nusers:")


def test_the_design_of_a_database(read):
    design = read("users:", DATABASE).database.design()
    assert design == Design(
        files=(File(r"D:\data\bank.mdf", "bank", 20 * GIB), File(r"E:\data\bank_2.ndf", "bank_2", None, 64 * MIB)),
        filegroups=(Filegroup("growing", (File(r"F:\data\growing.ndf", "grow", 2 * GIB, 0),)),),
        log=(File(r"L:\log\bank_log.ldf", "bank_log", 8 * GIB, 512 * MIB),),
        tables=(TableGroup(("history",), "growing", None, "page"),),
        tempdb=TempDb((File(r"T:\tempdb.mdf", "tempdb"),), File(r"T:\templog.ldf", "templog")),
        settings=Settings("simple", True, False, 160, 60, "disabled", "checksum", True, "async"),
    )


@pytest.mark.parametrize(
    ("replaced", "sets"),
    [
        ((), ("measure=90500ms", "variants.1.buffer_pool=12.5 %", "think_time={mean: 20ms}")),
        ((), ("warm_up={until: steady, at_least: 20s, at_most: 2h}", "slo={read: 5ms, percentile: p99}")),
        ((), ("emulated_array=null", "variants=[{name: HDD, array: {flash_cache: 800GB}}]", "array={shelf: 2}")),
        (("users:", DATABASE), ()),
    ],
    ids=["times", "steady", "array", "database"],
)
def test_a_scenario_survives_its_own_record(read, path, replaced, sets):
    """The scenario that a manifest keeps can be run again."""
    scenario = read(*replaced, sets=sets)
    for dumped in (scenario.model_dump(mode="json"), scenario.model_dump(mode="json", exclude_none=True)):
        path.write_text(json.dumps(dumped))
        assert read_scenario(str(path)) == scenario


WRONG_DESIGNS = [
    ("files: [{path: 'D:", "file: [{path: 'D:", "line 8: unknown key database.file: did you mean files?"),
    ("{path: 'E:", "{size: 1GiB, pth: 'E:", "line 8: unknown key database.files.1.pth: did you mean path?"),
    ("size: 20GiB", "size: 20", "line 8: database.files.0.size: 20 has no unit: write 20MiB or 20GiB."),
    ("size: 20GiB", "size: large", "line 8: database.files.0.size: 'large' is not a size: write it as 64MiB or 20GiB."),
    ("size: 20GiB", "size: 1MiB", r"line 7: database: D:\data\bank.mdf is to have less than 8MiB: give it more."),
    (r"D:\data\bank.mdf", "bank.mdf", "line 7: database: bank.mdf is not a file on a server: write it whole, as D:"),
    (r"D:\data\bank.mdf", r"\\nas\bank.mdf", r"line 7: database: \\nas\bank.mdf is on a network share, where the"),
    (r"D:\data\bank.mdf", "/data/bank.mdf", "line 7: database: Some files are on a Windows server and some on a Linux"),
    (r"E:\data\bank_2", r"d:\DATA\BANK", "line 7: database: The file BANK is there twice: give each its own."),
    ("page}", "zip}", "line 12: database.tables.0.compression must be none, row or page, not 'zip'."),
    ("filegroup: gr", "filegroup: wr", "line 7: database: history cannot be stored in wrowing: no filegroup has that"),
    ("[history]", "[histroy]", ": database.tables: bank has no table histroy: there are accounts, branches, history,"),
    ("change_server: true, ", "", "line 7: database: tempdb belongs to every database of the server: write `change_s"),
    ("recovery: simple", "recovery: easy", "line 14: database.recovery must be simple, bulk_logged or full, not"),
    ("snapshot: on", "snapshot: true", "line 15: database.read_committed_snapshot must be on or off, not true."),
    ("level: 160", "level: 165", "line 17: database.compatibility_level must be 130, 140, 150, 160 or 170"),
    ("level: 160", "level: 120", "line 17: database.compatibility_level: 120 is too low: the procedures call STRIN"),
    ("time: 1min", "time: 1", "line 18: database.target_recovery_time: 1 has no unit: write 1s or 1min."),
    ("time: 1min", "time: 500ms", "line 18: database.target_recovery_time must be a multiple of 1s, not '500ms'."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG_DESIGNS, ids=[new[:30] for _, new, _ in WRONG_DESIGNS])
def test_a_design_that_cannot_be(read, path, old, new, sentence):
    assert old in DATABASE
    with pytest.raises(StallmarkError) as refused:
        read("users:", DATABASE.replace(old, new))
    said = str(refused.value)
    assert said.startswith(str(path)) and said.count("\n") == 0
    assert sentence in said


def test_places_without_the_first_file(read):
    text = "database: {log: [{path: /log/bank.ldf}]}\nusers:"
    with pytest.raises(StallmarkError, match=r"the database itself has none: name its files\."):
        read("users:", text)


def test_the_order_of_runs_and_the_primary_metric_are_declared(read):
    scenario = read(sets=("repeats=2", "order=blocks", "primary=p99", "ramp=0s", "warm_up=2s", "measure=8s"))
    assert scenario.primary == "p99" and scenario.model_dump(mode="json")["order"] == "blocks"
    count = len(scenario.variants)
    assert len(scenario.run_order()) == (2 * (count + 1) if count > 1 else 2)


def test_a_variant_may_have_settings_of_the_server_as_it_wants(read):
    sets = ("variants.0.row_versioning=true", "variants.1.resource_pool={iops_per_volume: 500, cpu_percent: 50}")
    first, second, *_ = read(sets=sets).variants
    assert first.row_versioning is True and second.row_versioning is None
    assert dict(second.resource_pool) == {"iops_per_volume": 500, "cpu_percent": 50, "grants_percent": None}
    with pytest.raises(StallmarkError, match="write a limit"):
        read(sets=("variants.0.resource_pool={}",))


def test_nobody_is_asked_at_the_end(read):
    assert read(sets=("at_end={command: [mail, me]}",)).at_end.command == ["mail", "me"]
    with pytest.raises(StallmarkError, match="at_end"):
        read(sets=("at_end={ask: Ready?}",))


def test_a_size_is_a_scale_that_gives_the_same_database_again(read):
    sized = read(sets=("workload={name: brokerage, scale: {size: 20GB}}",))
    scale = sized.workload.scale
    assert scale == {"customers": 2_000, "days": 214.5, "compressibility": 2}
    assert read(sets=("workload={name: brokerage, scale: {customers: 2000, days: 214.5}}",)).workload == sized.workload
    again = type(sized).model_validate(sized.model_dump(mode="json"))  # as a record keeps it
    assert again.contents == sized.contents


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ("{size: 20}", "it takes from 104"), ("{size: 1MB}", "it takes from 104"),
        ("{size: large}", "size: 'large' is not a size"), ("{size: '20'}", "size: 20 has no unit"),
        ("{size: 20GB, days: 4}", "leave out `size` or `days`"),
    ],
)  # fmt: skip
def test_a_size_that_cannot_be_is_refused(read, scale, words):
    with pytest.raises(StallmarkError, match=re.escape(words)):
        read(sets=(f"workload={{name: brokerage, scale: {scale}}}",))


# In which order runs are made


@pytest.mark.parametrize(
    ("order", "letters"), [("alternating", "ABCABCABC"), ("abba", "ABCCBAABC"), ("blocks", "AAABBBCCCAAA")]
)
def test_orders(order, letters):
    made = run_order("ABC", 3, order)
    assert "".join(run.variant for run in made) == letters
    assert "".join(run.variant for run in made if run.again) == ("AAA" if order == "blocks" else "")


@given(st.integers(1, 6), st.integers(1, 8), st.sampled_from(["alternating", "abba", "blocks"]))
def test_every_variant_runs_as_often_as_asked_and_no_repeat_twice(variants, repeats, order):
    made = run_order(range(variants), repeats, order)
    places = [(run.variant, run.repeat) for run in made]
    assert len(set(places)) == len(places)
    for variant in range(variants):
        assert sum(run.variant == variant and not run.again for run in made) == repeats


@given(st.integers(2, 6), st.sampled_from([2, 4, 6]))
def test_a_steady_drift_falls_on_all_variants_alike_in_the_order_abba(variants, repeats):
    made = run_order(range(variants), repeats, "abba")
    when = [sum(time for time, run in enumerate(made) if run.variant == variant) for variant in range(variants)]
    assert len(set(when)) == 1


def test_blocks_end_with_the_first_variant_again():
    assert [(run.variant, run.repeat, run.block, run.again) for run in run_order("AB", 1, "blocks")] == [
        ("A", 1, 1, False), ("B", 1, 2, False), ("A", 2, 3, True),
    ]  # fmt: skip


# Waiting for a steady state in a scenario, and the service level of its reads


UNTIL = "warm_up={until: steady, at_least: 20s, at_most: 2h}"


def test_a_plain_warm_up_waits_for_nothing(read):
    timeline = read(sets=("ramp=1s", "warm_up=30s")).timeline(Variant(name="one"))
    assert timeline.warm_up_limits is None and timeline.steps[0].measure_s == 31


def test_a_steady_state_is_planned_for_the_last_moment(read):
    scenario = read(sets=("ramp=1s", "users=[1, 5]", "measure=60s", UNTIL))
    timeline = scenario.timeline(Variant(name="one"))
    assert timeline.warm_up_limits == WarmUpLimits(20, 7200)
    assert [step.measure_s for step in timeline.steps] == [7201, 7201 + 60 + 7201]
    assert scenario.timeline(Variant(name="one")).end_s > 7200


def test_it_is_waited_for_half_a_minute_at_least(read):
    assert read(sets=("warm_up={until: steady, at_most: 5min}",)).timeline(
        Variant(name="one")
    ).warm_up_limits == WarmUpLimits(30, 300)


def test_the_record_says_what_the_service_level_is(read):
    assert read().slo is None
    assert objective(read(sets=("slo=oltp",)).slo).model_dump() == {
        "name": "oltp",
        "read_ms": 20,
        "ideal_ms": 10,
        "percentile": "p95",
        "transactions": (),
    }
    assert objective(read(sets=("slo={read: 500ms, percentile: p99}",)).slo).model_dump() == {
        "name": "read",
        "read_ms": 500,
        "ideal_ms": None,
        "percentile": "p99",
        "transactions": (),
    }


def test_every_ready_made_service_level_may_be_named():
    assert set(get_args(ReadyMade)) == set(READY_MADE)


def test_queries_have_a_service_level_and_no_warm_up(tmp_path):
    path = tmp_path / "power.yaml"
    path.write_text(
        "{name: power, title: Power, answers: How long?, needs: Nothing., slo: dss, reset: continue, "
        "workload: {name: warehouse, scale: {factor: 0.01}}, queries: {run: power}, variants: [{name: only}]}"
    )
    scenario = read_scenario(str(path))
    assert isinstance(scenario, QueryScenario) and objective(scenario.slo).read_ms == 30


def test_thresholds_are_understood_before_anything_starts(read):
    assert read(sets=("thresholds=[p95 < 20ms, transfer.p99 < 1s]",)).thresholds == ["p95 < 20ms", "transfer.p99 < 1s"]
    for wrong in ("p95 < soon", "no_such.p99 < 1s", "speed > 1"):
        with pytest.raises(StallmarkError, match="thresholds"):
            read(sets=(f"thresholds=[{wrong}]",))
