"""The findings of a curve of memory, and the cases in which it is not said."""

from dataclasses import replace

import numpy as np
import pytest
from support.comparisons import one_run, with_manifest, with_step
from support.memory_curves import Curve, cliff, flat, rate
from support.steps import changed_step

from stallmark.analysis.ceiling import FAST_MS, GIB, FlashKind, flash_findings
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.experiment import answer
from stallmark.analysis.finding import ExperimentKind, Finding, Kind, info
from stallmark.analysis.pool_curve import CurveKind, PoolCurve, curve_findings, pool_curves
from stallmark.analysis.prediction import predict
from stallmark.analysis.run import RunSummary
from stallmark.record.manifest.storage import Array, Devices
from stallmark.stats.curve_search import MIB
from stallmark.stats.inference import pooled_spread

pytestmark = pytest.mark.thorough

SIZES = (16, 32, 64, 128, 256, 512)
KNEE = cliff(48 * MIB)


def swept(
    sound: RunSummary, reads: Curve = KNEE, repeats: int = 1, scatter: float = 0.0, sizes=SIZES, seed: int = 1
) -> list[RunSummary]:
    """Runs of a sweep over sizes in MiB whose throughput is that of known reads, scattered."""
    rng = np.random.default_rng(seed)
    runs = []
    for repeat in range(1, repeats + 1):
        for size in sizes:
            tps = rate(reads)(size * MIB) * float(np.exp(rng.normal(0, scatter)))
            runs.append(sized(one_run(sound, f"{size} MiB", tps, len(runs) + 1, repeat), size, reads(size * MIB)))
    return runs


def sized(run: RunSummary, mib: int, reads: float | None) -> RunSummary:
    step = run.steps[0]
    storage = replace(step.storage, reads_per_transaction=reads)
    changed = replace(step, buffer_pool_bytes=mib * MIB, buffer_pool_share=mib / 512, storage=storage)
    memory = run.manifest.memory.changed(configured_bytes=mib * MIB, reached_bytes=mib * MIB)
    variant = run.manifest.variant.changed(buffer_pool=f"{mib}MiB")
    return with_manifest(replace(run, steps=[changed]), memory=memory, variant=variant)


def curves_of(runs: list[RunSummary]) -> list[PoolCurve]:
    return pool_curves(runs, Claims(runs))


def found(runs: list[RunSummary], *kinds: Kind) -> list[Finding]:
    claims = Claims(runs)
    curves = pool_curves(runs, claims)
    said = [one for curve in curves for one in (*curve_findings(curve), *flash_findings(curve, runs, claims))]
    return [one for one in said if one.kind in (kinds or tuple(CurveKind))]


def with_flash(sound: RunSummary, tps: float, mib: int = 16, flash: int = GIB, **scenario: object) -> RunSummary:
    run = sized(one_run(sound, "flash", tps, 99, 1), mib, KNEE(mib * MIB))
    run = with_manifest(run, array=Array(flash_cache_bytes=flash))
    return with_manifest(run, scenario=run.manifest.scenario.changed(**scenario)) if scenario else run


def test_no_size_is_called_enough_for_transactions_that_arrive_at_a_rate(sound):
    def arriving(arrivals: str) -> list[RunSummary]:
        runs = swept(sound, lambda _: 1.0)  # the same throughput everywhere
        return [with_manifest(run, steps=[run.manifest.steps[0].changed(arrivals=arrivals)]) for run in runs]

    assert found(arriving("closed"), CurveKind.ENOUGH) and not curves_of(arriving("poisson"))


def test_the_smallest_size_that_is_enough_with_twice_and_half_of_it(sound):
    [enough] = found(swept(sound), CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH, CurveKind.FELL)
    assert enough.kind is CurveKind.ENOUGH
    times, change, low, high = enough.facts["more"]
    assert enough.facts["pool_bytes"] == 128 * MIB and times == 2 and abs(change) < 0.05 and low is high is None
    cost = rate(KNEE)(64 * MIB) / rate(KNEE)(128 * MIB) - 1
    assert enough.facts["less"][:2] == pytest.approx([0.5, cost]) and not enough.facts["smallest"]


def test_repeats_give_intervals_by_the_scatter_of_all_sizes(sound):
    runs = swept(sound, repeats=3, scatter=0.02)
    [curve] = curves_of(runs)
    [enough] = found(runs, CurveKind.ENOUGH)
    _, change, low, high = enough.facts["more"]
    assert low < change < high and enough.facts["fewest_runs"] == 3
    values = [[size.tps] for size in curve.sizes]
    assert (curve.spread, curve.df) == pooled_spread(values) and curve.df == 2 * len(SIZES)
    half = enough.facts["less"]
    assert half[2] < half[1] < half[3] < 0


def test_the_interval_of_twice_as_much_holds_the_truth(sound):
    truth = rate(KNEE)(256 * MIB) / rate(KNEE)(128 * MIB) - 1
    held = []
    for seed in range(60):
        [one] = found(swept(sound, repeats=3, scatter=0.02, seed=seed), CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH)
        if one.facts["pool_bytes"] == 128 * MIB:
            held.append(one.facts["more"][2] <= truth <= one.facts["more"][3])
    assert len(held) > 40 and np.mean(held) >= 0.88


def test_a_flat_curve_says_that_the_smallest_is_enough(sound):
    [enough] = found(swept(sound, flat), CurveKind.ENOUGH)
    assert enough.facts["smallest"] and enough.facts["less"] is None


def test_nothing_is_enough_where_memory_pays_to_the_end(sound):
    runs = swept(sound, cliff(600 * MIB, 3))
    assert found(runs, CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH) == []
    [pays] = found(runs, CurveKind.STILL_BUYS)
    assert pays.facts["pool_bytes"] == 512 * MIB and pays.facts["last"][0] == 2 and pays.facts["last"][1] > 0.2


def test_all_of_the_data_stand_for_twice_as_much(sound):
    sizes = (16, 32, 64, 128, 256, 384, 512)
    [enough] = found(swept(sound, cliff(200 * MIB, 9), sizes=sizes), CurveKind.ENOUGH)
    assert enough.facts["pool_bytes"] == 384 * MIB and enough.facts["more"][0] == pytest.approx(512 / 384)
    half_of_them = [with_step(run, buffer_pool_share=0.4) for run in swept(sound, cliff(200 * MIB, 9), sizes=sizes)]
    assert found(half_of_them, CurveKind.ENOUGH) == []


def test_enough_is_not_said_where_the_driver_was_the_bottleneck(sound):
    runs = swept(sound)
    at = SIZES.index(256)
    runs[at] = with_step(runs[at], driver_bound=info(CurveKind.KNOWN))
    [doubtful] = found(runs, CurveKind.ENOUGH, CurveKind.MAY_BE_ENOUGH)
    assert doubtful.kind is CurveKind.MAY_BE_ENOUGH and doubtful.facts["driver_bound"]


def test_enough_is_not_said_where_runs_scatter_too_much(sound):
    runs = swept(sound, repeats=2, scatter=0.25, seed=5)
    assert found(runs, CurveKind.ENOUGH) == []


def test_no_size_is_enough_where_throughput_falls_with_memory(sound):
    runs = swept(sound)
    runs[-1] = with_step(runs[-1], tps=runs[-1].steps[0].result_tps * 0.7)
    assert {one.kind for one in found(runs)} & {CurveKind.ENOUGH, CurveKind.STILL_BUYS} == set()
    [fell] = found(runs, CurveKind.FELL)
    assert fell.facts["pools_bytes"][1] == 512 * MIB and fell.facts["change"] < -0.25


def test_too_few_sizes_or_invalid_ones_make_no_curve(sound):
    assert curves_of(swept(sound, sizes=(16, 64, 256))) == []
    runs = swept(sound)
    doubtful = [replace(one, incomplete_because="it was killed") for one in runs[:3]]
    assert curves_of([*doubtful, *runs[3:]]) == []


def test_runs_of_other_users_or_devices_are_no_part_of_it(sound):
    runs = swept(sound)
    other = [with_step(one, users=3) for one in swept(sound, flat)]
    assert [len(curve.sizes) for curve in curves_of([*runs, *other[:2]])] == [6]
    assert len(curves_of([*runs, *other])) == 2


def test_a_curve_that_jumps_between_its_sizes_is_not_known(sound):
    [known] = found(swept(sound, cliff(48 * MIB, 1.2)), CurveKind.KNOWN, CurveKind.NOT_KNOWN)
    [jumps] = found(swept(sound, cliff(48 * MIB, 60)), CurveKind.KNOWN, CurveKind.NOT_KNOWN)
    assert known.kind is CurveKind.KNOWN and known.facts["error"] < 0.05
    assert jumps.kind is CurveKind.NOT_KNOWN and jumps.facts["error"] > 0.1


def test_without_reads_the_curve_is_of_throughput_alone(sound):
    runs = [sized(run, size, None) for run, size in zip(swept(sound), SIZES, strict=True)]
    [curve] = curves_of(runs)
    assert curve.reads is None and found(runs, CurveKind.ENOUGH)


def test_flash_is_worth_the_memory_that_gives_as_much(sound):
    as_64 = rate(KNEE)(64 * MIB)
    runs = [*swept(sound), with_flash(sound, as_64, flash=256 * MIB)]
    [worth] = found(runs, *FlashKind)
    assert worth.kind is FlashKind.FOR_MEMORY and worth.facts["costs"] is None
    assert worth.facts["equal_bytes"] == pytest.approx(64 * MIB, rel=0.02)
    assert worth.facts["worth"] == pytest.approx((64 - 16) / 256, rel=0.05)
    low, high = worth.facts["equal_range"]
    assert low in (32 * MIB, 64 * MIB) and high in (64 * MIB, 128 * MIB)


@pytest.mark.parametrize(("cost", "cheaper"), [({"memory": 4.0, "flash": 0.2}, 1), ({"memory": 0.5, "flash": 4.0}, 0)])
def test_the_cost_says_which_buys_more(sound, cost, cheaper):
    runs = [*swept(sound), with_flash(sound, rate(KNEE)(64 * MIB), flash=256 * MIB, cost=cost)]
    [worth] = found(runs, *FlashKind)
    assert np.argmin(worth.facts["costs"]) == cheaper
    assert worth.facts["costs"][1] == pytest.approx(0.25 * cost["flash"])


def test_flash_that_gives_no_more_or_more_than_any_memory(sound):
    runs = swept(sound)
    assert [one.kind for one in found([*runs, with_flash(sound, rate(KNEE)(16 * MIB))], *FlashKind)] == [
        FlashKind.NO_GAIN
    ]
    assert [one.kind for one in found([*runs, with_flash(sound, 2000.0)], *FlashKind)] == [FlashKind.BEYOND_MEMORY]


def test_flash_is_not_compared_without_evidence(sound):
    runs = swept(sound)
    without = with_manifest(with_flash(sound, 300.0), array=None, devices=Devices())
    larger = with_flash(sound, 300.0, mib=2048)
    real = with_flash(sound, 300.0)
    real = replace(real, steps=[changed_step(real.steps[0], emulated_roles=())])
    for other in (without, larger, real):
        assert found([*runs, other], FlashKind.FOR_MEMORY, FlashKind.NO_GAIN, FlashKind.BEYOND_MEMORY) == []


def test_a_curve_with_flash_says_nothing_of_memory_without_it(sound):
    runs = [with_manifest(run, array=Array(flash_cache_bytes=GIB)) for run in swept(sound)]
    assert found([*runs, with_flash(sound, 300.0)], *FlashKind) == []


def test_the_curve_is_the_answer_and_takes_the_place_of_the_largest_gain(sound):
    runs = swept(sound)
    said = list(conclusions("buffer_pool", runs, curves=curves_of(runs)))
    assert answer(said, runs, None).kind is CurveKind.ENOUGH
    assert ExperimentKind.POOL_GAIN not in {one.kind for one in said}
    few = swept(sound, sizes=(16, 64, 256))
    assert ExperimentKind.POOL_GAIN in {one.kind for one in conclusions("buffer_pool", few)}


def with_prediction(run: RunSummary, read_ms: float, tps: float) -> RunSummary:
    """A run whose reads took so long, and for which so much is predicted with reads of 1 ms."""
    cause = run.steps[0].cause
    demands = replace(cause.demands, read_ms=read_ms)
    demands = replace(demands, tps=demands.tps * tps / predict(demands, FAST_MS).tps)
    return replace(run, steps=[replace(run.steps[0], cause=replace(cause, demands=demands))])


def test_predicted_reads_stand_in_for_flash_only_where_reads_were_slow_and_no_run_had_flash(sound):
    runs = swept(sound)
    at_64 = rate(KNEE)(64 * MIB)
    predicted = [with_prediction(runs[0], 2.0, at_64), *runs[1:]]
    [reads] = found(predicted, *FlashKind)
    assert reads.kind is FlashKind.READS_FOR_MEMORY and reads.facts["pool_bytes"] == 16 * MIB
    assert reads.facts["equal_bytes"] == pytest.approx(64 * MIB, rel=0.02)
    assert reads.facts["equal_range"][0] < 64 * MIB < reads.facts["equal_range"][1]
    fast = [with_prediction(run, 1.2, at_64) for run in runs]
    no_more = [with_prediction(run, 2.0, rate(KNEE)(8 * MIB)) for run in runs]
    beside = [*predicted, with_flash(sound, at_64)]
    for others in (fast, no_more, beside):
        assert FlashKind.READS_FOR_MEMORY not in {one.kind for one in found(others, *FlashKind)}
