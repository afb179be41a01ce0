"""The checks of a selftest with one workload, in order: load, restore, cap, execute, drive, check, report."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stallmark import format
from stallmark.analysis.experiment import summarise
from stallmark.analysis.validity import gates
from stallmark.cli.common import CONDITION_BROKEN, INCOMPLETE
from stallmark.cli.selftest.alone import Alone
from stallmark.cli.selftest.check import Off, SelftestResult, Wrong, attempt
from stallmark.cli.selftest.database import CHOICES, drop
from stallmark.cli.selftest.record import collectors, deadlocks, transactions
from stallmark.engines.abilities import AnyAbility, Missing
from stallmark.engines.base import Engine
from stallmark.errors import ErrorClass
from stallmark.experiment.opening import counted
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.loaders import ledger, load
from stallmark.record.manifest.course import Unheard
from stallmark.record.manifest.workload import Counted
from stallmark.record.reader import Record, find_records
from stallmark.report.in_json import experiment_in_json
from stallmark.report.page import write_report
from stallmark.report.text import sentence
from stallmark.report.text.gates import figure
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.transactions import checks, find_workload
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.market_emulator import OTHER_SHARES, TapeReport
from stallmark.transactions.brokerage.market_feed import MarketFeed
from stallmark.transactions.workload import Outcome, Workload

USERS = 4
ROUNDS = 24  # of each transaction alone: some branches are rare, and maintenance goes through twelve tables


@dataclass
class Bench:
    """The state of the checks. `alone` has the results of single transactions; `record` exists after the drive."""

    engine: Engine
    choice: WorkloadChoice
    runs: Path
    show: Show
    seconds: float
    may_cap_memory: bool
    alone: Alone | None = None
    record: Record | None = None

    @property
    def workload(self) -> Workload:
        return find_workload(self.choice.name)


def checks_of(bench: Bench) -> Iterator[SelftestResult]:
    loading = attempt("load", lambda: _load(bench))
    yield loading
    if loading.state == "failed":
        return
    yield attempt("consistency as loaded", lambda: _consistent(bench))
    if bench.choice is CHOICES[0]:
        yield attempt("copy and restore", lambda: _restore(bench))
        yield attempt("memory cap, and given back", lambda: _cap_memory(bench))
    yield attempt("transactions alone", lambda: _execute_alone(bench))
    if bench.alone:
        yield from bench.alone.checks()
    driving = attempt(f"{USERS} users", lambda: _drive(bench))
    yield driving
    if bench.record is None:
        return
    yield from transactions(bench.record, bench.workload)
    yield from collectors(bench.record)
    yield from deadlocks(bench.record)
    if bench.workload.users.counted:
        yield attempt("counted as committed", lambda: _counted(bench))
    yield attempt("consistency after the load", lambda: _consistent(bench))
    yield attempt("report", lambda: _report(bench))


def _load(bench: Bench) -> str:
    choice = bench.choice
    drop(bench.engine)  # the workload before, or what an earlier selftest left
    with bench.show.bar(f"Loading {choice}", None):
        built = load.build(bench.engine, bench.workload, choice.scale, choice.seed, workers=2)
    slow = f". {built.caution}" if built.caution else ""
    return f"{built.rows:,} rows in {built.seconds:.1f} s, with keys, procedures and statistics{slow}"


def _consistent(bench: Bench) -> str:
    """Check conditions and keys; after transactions, leave out conditions that hold only as loaded."""
    entry = ledger.read(bench.engine)
    assert entry
    found = checks.run(bench.engine, bench.workload, bench.choice.scale, driven=entry.driven)
    if refused := [f"{each.name} ({each.refused})" for each in found if each.refused]:
        raise Wrong(f"the server refused conditions: {'; '.join(refused)}")
    findings = [each for each in found if each.holds is not None]
    keys = checks.keys(bench.engine, bench.workload)
    if broken := [
        f"{each.name}: {each.offending:,} {each.counted} ({each.detail})"
        for each in (*findings, keys)
        if not each.holds
    ]:
        raise Wrong("; ".join(broken), CONDITION_BROKEN)
    return f"all {len(findings)} conditions hold, and all keys are there"


def _restore(bench: Bench) -> str:
    engine, backup = bench.engine, _had(bench.engine.backup)
    before = ledger.read(engine)
    assert before
    with bench.show.bar("Keeping a copy and restoring it", None), engine.hold():
        backup.keep(before.label)
        if backup.label() != before.label:
            raise Wrong("the copy was made and is not known as a copy of this database")
        ledger.note_driven(engine)
        backup.restore()
        after = ledger.read(engine)
        backup.drop()
    if after != before:
        raise Wrong("what came back is not what was kept")
    left = "" if backup.label() is None else "; the backup file stays (`stallmark copies --remove` removes it)"
    return f"kept, changed, and brought back{left}"


def _cap_memory(bench: Bench) -> str:
    """Cap the memory at a tenth less than it holds: enough to see it come, and no more than that is taken
    from others."""
    engine, memory = bench.engine, _had(bench.engine.memory)
    if not engine.is_local and not bench.may_cap_memory:
        raise Off(
            "left out: it lowers the memory of the whole server by a tenth for a moment, which also empties its plan "
            "cache on many versions; add --cap-memory if nobody else needs it"
        )
    had, before = engine.buffer_pool_bytes(), engine.settings().configuration
    wanted = max(memory.smallest_bytes, (had or 0) * 9 // 10) // 1024**2 * 1024**2
    with bench.show.bar("Capping the memory", None), engine.hold():
        reached = memory.cap(wanted)
        if engine.is_local and had:
            memory.cap(had)  # a server of our own has nobody's settings to give back
    told = _given_back(before, engine.settings().configuration)
    return f"asked {wanted // 1024**2:,} MiB, reached {reached // 1024**2:,} MiB, {told}"


def _had(ability: AnyAbility | Missing) -> AnyAbility:
    if (why := ability.refusal()) or isinstance(ability, Missing):
        raise Off(why)
    return ability


def _given_back(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Compare only the settings that a cap changes, as far as the server tells them: others change by themselves."""
    for name in ("max server memory (MB)", "shared_buffers"):
        if name in before:
            if after.get(name) != before[name]:
                raise Wrong(f"not given back: {name} was {before[name]}, and is {after.get(name, 'not told')}")
            return "then as before"
    return "and the server does not tell whether it is as before"


def _execute_alone(bench: Bench) -> str:
    """Execute every transaction by itself: a short run may not reach all, and some fail there because of others."""
    workload = bench.workload
    ledger.note_driven(bench.engine)
    before = counted(bench.engine, workload)
    alone = bench.alone = Alone(bench.engine, bench.choice)
    try:
        with bench.show.bar("Executing each transaction alone", None):
            for kind in [*workload.users.deck, *workload.background.timers]:
                for _ in range(ROUNDS):
                    alone.execute(kind)
            # Limit orders first, while none has come to its price by itself.
            said = [_bring_to_their_limits(bench.engine, alone)] if bench.choice.name == "brokerage" else []
            alone.answer()
            # The opening of the run is to find something: what these give rise to does not come any more.
            for kind in {source for source, _ in workload.background.followers.values()}:
                for _ in range(ROUNDS):
                    alone.execute(kind)
    finally:
        alone.close()
    numbers = {
        name: Counted(before=before[name], after=after) for name, after in counted(bench.engine, workload).items()
    }
    if numbers:
        said.append(_as_committed(numbers, alone.ended(Outcome.COMMITTED), alone.ended(ErrorClass.UNKNOWN_OUTCOME)))
    return "; ".join([f"each {ROUNDS} times", *said])


def _bring_to_their_limits(engine: Engine, alone: Alone) -> str:
    """Let the tape report that the securities of all limit orders have come to the limits; these are executed then."""
    context: Context = alone.shared
    waiting = "SELECT tr_tt_id, tr_s_symb, tr_bid_price FROM brokerage.trade_request ORDER BY tr_t_id"
    requests = engine.query(waiting)
    if not requests:
        raise Wrong("no limit order waits for its price")
    securities = {symbol: security for security, symbol in enumerate(context.symbols)}
    tape = tuple(TapeReport(securities[symbol], round(limit * 100), OTHER_SHARES) for _, symbol, limit in requests)
    alone.execute(MarketFeed, tape)
    alone.answer()
    if left := engine.query(waiting):
        raise Wrong(f"{len(left)} of {len(requests)} limit orders still wait, though their prices have come")
    types = Counter(kind for kind, _, _ in requests)
    return "limit orders came to their prices: " + ", ".join(f"{types[each]} {each}" for each in sorted(types))


def _as_committed(numbers: Mapping[str, Counted], committed: Mapping[str, int], unknown: Mapping[str, int]) -> str:
    gate = gates.completed(numbers, committed, unknown, Unheard())
    assert gate
    if gate.passed is None:
        raise Off(figure(gate))  # a run that ended early
    if gate.failure:
        raise Wrong(sentence(gate.failure), CONDITION_BROKEN)
    return figure(gate)


def _counted(bench: Bench) -> str:
    assert bench.record
    committed, unknown = Counter[str](), Counter[str]()
    for row in bench.record.table("transactions").to_pylist():
        committed[row["transaction"]] += row["committed"]
    for row in bench.record.table("errors").to_pylist():
        if row["error_class"] == ErrorClass.UNKNOWN_OUTCOME:
            unknown[row["transaction"]] += row["attempts"]
    return _as_committed(bench.record.manifest.workload.counted, committed, unknown)


def _drive(bench: Bench) -> str:
    scenario = Scenario.model_validate(
        {
            "name": f"selftest-{bench.choice.name}", "title": "Selftest",
            "answers": "Does everything work here?", "needs": "",
            "workload": bench.choice, "users": USERS, "warm_up": "1s", "measure": f"{bench.seconds:g}s",
            "reset": "continue", "variants": [{"name": "selftest"}],
        }
    )  # fmt: skip
    runner = Runner(scenario, bench.engine, bench.runs, bench.show)
    try:
        finished = runner.run()
    finally:
        if runner.folder.exists():
            bench.record = find_records([runner.folder])[0]
    if finished.incomplete_because:
        raise Wrong(finished.incomplete_because, INCOMPLETE)
    return f"{bench.seconds:.0f} s measured"


def _report(bench: Bench) -> str:
    assert bench.record
    target = bench.record.folder.parent / "report.html"
    summary = summarise([bench.record])
    write_report(summary, target)
    experiment_in_json(summary)
    return format.size(target.stat().st_size)
