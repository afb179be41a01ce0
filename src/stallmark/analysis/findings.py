"""A few honest sentences on what was found, most important first. Invalid steps are never compared."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stallmark.analysis.interim import sentence
from stallmark.analysis.points import Point, group, labels, points
from stallmark.analysis.read.active_set_summary import FlashUse
from stallmark.analysis.summary import RunSummary, StepSummary
from stallmark.format import factor, listed, number, per_second, per_transaction, percent
from stallmark.stats.thresholds import CPU_LIMITS, READS_DIFFER, REPLICATES, SAME


def findings(axis: str, runs: Sequence[RunSummary], judged: bool = False) -> list[str]:
    """`judged`: a comparison's verdicts stand beside them, which tell better what differs between variants."""
    return list(_findings(axis, runs, judged))


def _findings(axis: str, runs: Sequence[RunSummary], judged: bool) -> Iterator[str]:
    steps = [step for run in runs for step in run.steps]
    broken = [run.title for run in runs if any(c.holds is False for c in run.conditions)]
    if broken:
        yield f"The data were wrong after {listed(broken)}: no figure of such a run means anything."
    if not steps:
        yield "Nothing was measured: no run reached the end of its warm-up."
        return
    valid = [step for step in steps if not step.invalid and step.result_tps > 0]
    if len(valid) < len(steps):
        yield f"{len(steps) - len(valid)} of {len(steps)} measured steps are not compared; each says why."
    found = points(valid)
    yield from _unsteady(steps)
    if axis == "users":
        yield from _users(found)
    if axis == "buffer_pool":
        yield from _pools(found)
    if axis in ("buffer_pool", "device"):
        yield from _devices(found)
    yield from _flash(found)
    if axis == "variant" and not judged:
        yield from _variants(found)
    yield from _beside(found)
    yield from _limits(found)
    yield from _bottleneck(found)
    if bound := [point for point in found if any(step.driver_bound for step in point.steps)]:
        names = listed(labels(bound, found))
        yield (f"The driver was the bottleneck in {names}: the server could have done more than the figures say.")
    if len(found) > 1:
        yield from _certainty(found)


def _unsteady(steps: Sequence[StepSummary]) -> Iterator[str]:
    """That a load never becomes steady is a result: a cache that warms for hours, a device that tires."""
    everything = points(steps)
    for point in everything:
        never = [one for s in point.steps if (one := s.steadiness) and one.verdict == "never became steady"]
        if never:
            where = f" in {labels([point], everything)[0]}" if len(everything) > 1 else ""
            many = f", in {len(never)} of {len(point.steps)} runs" if len(point.steps) > 1 else ""
            said = sentence(never[0].finding).removeprefix("It never became steady: ")
            yield f"No steady state was reached{where}{many}: {said}"


def _pools(found: Sequence[Point]) -> Iterator[str]:
    """Smallest against largest buffer pool on each device."""
    devices = _by_device(found)
    for device, same in devices.items():
        same = sorted(same, key=lambda point: point.first.buffer_pool_bytes or 0)
        if len({point.first.buffer_pool_bytes for point in same}) < 2:
            continue
        small, large = same[0], same[-1]
        where = f"On {device}, growing" if len(devices) > 1 else "Growing"
        yield (
            f"{where} the buffer pool from {small.pool} to {large.pool} {_throughput(small, large)}"
            f"{_reads(small, large)}."
        )
        if len(same) > 2 and large.tps > small.tps * (1 + SAME):
            before, after = max(pairwise(same), key=lambda pair: pair[1].tps / pair[0].tps)
            yield (
                f"The largest single gain, {factor(after.tps / before.tps)}, lies between {before.pool} and "
                f"{after.pool}."
            )


def _devices(found: Sequence[Point]) -> Iterator[str]:
    """The same buffer pool on different devices, and the law that its reads per transaction should not
    differ."""
    for same in group(found, lambda point: (point.first.buffer_pool_bytes, point.first.users)):
        by_device = list(_by_device(same).items())
        for (slow_name, slow), (fast_name, fast) in pairwise(by_device):
            a, b = slow[0], fast[0]
            if a.first.emulated_roles != b.first.emulated_roles:
                yield (
                    f"With the same buffer pool of {a.pool}, {slow_name} and {fast_name} are not compared: an emulated "
                    "device says nothing of a real one."
                )
                continue
            yield (
                f"With the same buffer pool of {a.pool}, {fast_name} gave {_result(b)} against "
                f"{per_second(a.tps)} on {slow_name} ({factor(b.tps / a.tps)}{_one_run([a, b])})"
                f"{_while_warming([a, b])}."
            )
            before, after = a.reads_per_transaction, b.reads_per_transaction
            if before is None or after is None or abs(after - before) <= READS_DIFFER * max(before, after, 0.1):
                continue
            yield (
                f"Physical reads per transaction differ there ({per_transaction(before)} and "
                f"{per_transaction(after)}) though pool and transactions are the same: the pool had not "
                "filled, or "
                "something besides the device changed."
            )


def _flash(found: Sequence[Point]) -> Iterator[str]:
    """How much of the reads flash took off the disks, of the first run of every point that has any."""
    for point in found:
        use = point.first.flash
        if use is None or not use.share or use.read_ms is None:
            continue
        others = f", and the disks the others in {number(use.spindle_read_ms)} ms" if use.spindle_read_ms else ""
        yield (
            f"In {labels([point], found)[0]} the flash {use.kind} answered {percent(use.share)} of the reads, in "
            f"{number(use.read_ms)} ms each{others}{_rising(use)}."
        )


def _rising(use: FlashUse) -> str:
    if not use.warming:
        return ""
    first, second = percent(use.first_half or 0.0), percent(use.second_half or 0.0)
    return f"; it was still warming up: {first} in the first half of the measured interval, {second} in the second"


def _one_run(compared: Sequence[Point]) -> str:
    """Said here as well where a reader looks for the better of two arrays."""
    flash = any(point.first.flash for point in compared)
    return ", one run each" if flash and all(len(point.steps) == 1 for point in compared) else ""


def _while_warming(compared: Sequence[Point]) -> str:
    warming = any(step.flash_warming for point in compared for step in point.steps)
    return ", while flash was still warming up" if warming else ""


def _beside(found: Sequence[Point]) -> Iterator[str]:
    """What streams of queries cost the users, where nothing else differs."""
    for same in group(found, lambda point: (point.first.buffer_pool_bytes, point.first.device, point.first.users)):
        alone = next((point for point in same if point.first.beside is None), None)
        for point in same:
            if point.first.beside is None:
                continue
            done = _mean([step.beside.per_hour for step in point.steps if step.beside])
            streams = point.first.beside.streams
            said = (
                f"{streams} stream{'s' * (streams > 1)} of queries did {number(done)} queries per hour beside "
                f"{_count(point)}, who committed {_result(point)}"
            )
            if alone and alone.tps:
                said += f" against {per_second(alone.tps)} alone ({factor(point.tps / alone.tps)})"
            yield f"{said}."


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _users(found: Sequence[Point]) -> Iterator[str]:
    """Where throughput stops growing with the users."""
    variants = group(found, lambda point: point.first.variant)
    for same in variants:
        same = sorted(same, key=lambda point: point.first.users)
        if len(same) < 2:
            continue
        who = f"{same[0].first.variant}: " if len(variants) > 1 else ""
        few, best = same[0], max(same, key=lambda point: point.tps)
        yield (
            f"{who}{_count(few)} committed {_result(few)}; the most was {per_second(best.tps)} with "
            f"{_count(best)} ({factor(best.tps / few.tps)})."
        )
        knee = next(point for point in same if point.tps >= best.tps * (1 - SAME))
        last = same[-1]
        if knee is last or knee.latency_mean_ms is None or last.latency_mean_ms is None:
            continue
        yield (
            f"{who}{_count(knee)} already reached {percent(knee.tps / best.tps)} of the most; more users "
            "only queue: "
            f"the mean latency went from {number(knee.latency_mean_ms)} to {number(last.latency_mean_ms)} ms "
            "with "
            f"{_count(last)}."
        )


def _variants(found: Sequence[Point]) -> Iterator[str]:
    if len(found) < 2:
        for point in found:
            yield f"{point.first.variant} committed {_result(point)}."
        return
    worst, best = min(found, key=lambda p: p.tps), max(found, key=lambda p: p.tps)
    if best.tps <= worst.tps * (1 + SAME):
        yield f"All variants committed alike: {per_second(worst.tps)} to {_result(best)}."
        return
    yield (
        f"{best.first.variant} committed most, {_result(best)}; {worst.first.variant} least, "
        f"{per_second(worst.tps)} ({factor(best.tps / worst.tps)} between them)."
    )


def _bottleneck(found: Sequence[Point]) -> Iterator[str]:
    """Where storage limits, and the sentence of every step in which it does not, or not alone."""
    judged = [point for point in found if point.first.device_verdict]
    limited = [point for point in judged if point.first.device_is_bottleneck]
    if limited and len(limited) == len(judged) > 1:
        yield "Storage is the bottleneck in every step."
    elif limited:
        yield f"Storage is the bottleneck in {listed(labels(limited, found))}."
    for point in judged:
        if point.first.device_is_bottleneck is False or _cpus_limit(point):
            said = sentence(point.first.device_verdict) if point.first.device_verdict else ""
            yield f"{labels([point], found)[0]}: {said[0].lower()}{said[1:]}"


def _cpus_limit(point: Point) -> bool:
    return point.first.device_is_bottleneck is None and (point.first.cpu_busy_share or 0.0) >= CPU_LIMITS


def _limits(found: Sequence[Point]) -> Iterator[str]:
    """Where transactions took longer than the workload allows, which leaves a step comparable."""
    slow = [p for p in found if any(g.passed is False and not g.voids for s in p.steps for g in s.gates)]
    if slow:
        yield (
            f"In {listed(labels(slow, found))} more than a tenth of a type of transaction took longer than its limit."
        )


def _certainty(found: Sequence[Point]) -> Iterator[str]:
    fewest = min(len(point.steps) for point in found)
    if fewest == 1:
        yield "With one run per variant this is indicative only."
    else:
        most = max(point.spread for point in found)
        few = "" if fewest >= REPLICATES else f", and fewer than {REPLICATES} runs give no verdict"
        yield f"Runs of the same variant differed by up to {percent(most)}{few}."


def _throughput(a: Point, b: Point) -> str:
    verb = "raised" if b.tps > a.tps else "lowered"
    change = f"{a.counted} from {per_second(a.tps)} to {per_second(b.tps)} ({factor(b.tps / a.tps)})"
    if abs(b.tps / a.tps - 1) <= SAME:
        return f"hardly changed {a.counted} ({per_second(a.tps)} and {per_second(b.tps)})"
    return f"{verb} {change}"


def _reads(a: Point, b: Point) -> str:
    before, after = a.reads_per_transaction, b.reads_per_transaction
    if before is None or after is None:
        return ""
    texts = per_transaction(before), per_transaction(after)
    if texts[0] == texts[1]:
        return f"; physical reads per transaction stayed at {texts[0]}"
    verb = "fell" if after < before else "rose"
    return f"; physical reads per transaction {verb} from {texts[0]} to {texts[1]}"


def _by_device(found: Sequence[Point]) -> dict[str, list[Point]]:
    return {same[0].first.device: same for same in group(found, lambda point: point.first.device)}


def _result(point: Point) -> str:
    """The rate and what it counts: "45.0/s" of all, "4.50 Trade-Results/s"."""
    name = f" {point.counted}" if point.first.primary else ""
    return f"{number(point.tps)}{name}/s"


def _count(point: Point) -> str:
    return f"{point.first.users} users" if point.first.users != 1 else "1 user"
