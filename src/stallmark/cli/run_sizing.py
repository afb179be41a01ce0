"""The run of a sizing: `stallmark run sizing --profile DIR`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stallmark.cli.common import INCOMPLETE, err, escape, tell
from stallmark.cli.size import show_candidate
from stallmark.errors import CallFailed, StallmarkError, as_sentence
from stallmark.experiment.progress import Phase, Show
from stallmark.stopping import StopSignal

if TYPE_CHECKING:
    from stallmark.experiment.runner import LoadMachines
    from stallmark.experiment.target import Target
    from stallmark.scenarios.model import SizingScenario


def run_sizing(
    scenario: "SizingScenario",
    profile: Path,
    target: "Target",
    out_dir: Path,
    show: Show,
    machines: "LoadMachines | None",
    as_json: bool,
) -> None:
    """Measure what a server and its storage carry of the load of a profile, and show it."""
    from stallmark.analysis.profile.demand import demand_of
    from stallmark.experiment.estimate import estimate
    from stallmark.experiment.sizing import SizingRunner
    from stallmark.loaders.warehouse import command
    from stallmark.report.text import experiment
    from stallmark.storage.probe.tool import find_tool

    [variant] = scenario.variants
    find_tool(emulated=scenario.emulates(variant))  # before a database is built for nothing
    if scenario.queries and target.is_absent(scenario.contents):
        command()  # of the generator of their data: before I/O is replayed for nothing
    demand = demand_of(profile, window_s=scenario.replay.window)
    show.say(": ".join(filter(None, (scenario.title or scenario.name, scenario.answers))))
    absent = float(target.is_absent(scenario.contents))
    expects = estimate(scenario, to_build=absent, windows=len(demand.windows))
    show.say(f"It takes {experiment.takes(expects.total_s, expects.build_s, at_most=True)}.")
    runner = None
    try:
        with target.engine(scenario.contents, scenario) as engine:
            runner = SizingRunner(scenario, demand, engine, out_dir, show, machines)
            because = runner.run()
    except (StopSignal, StallmarkError, CallFailed, OSError):
        if runner and runner.measured:
            _report(runner.folder, show, as_json)
        raise
    _report(runner.folder, show, as_json)
    if because:
        tell(err, f"[bold red]Incomplete:[/] {escape(as_sentence(because))}")
        sys.exit(INCOMPLETE)


def _report(folder: Path, show: Show, as_json: bool) -> None:
    show.enter(Phase.REPORTING)
    try:
        show_candidate(folder, folder / "report.html", as_json)
    except (StallmarkError, OSError) as of_report:  # why it ended matters more
        show.say(f"There is no report: {of_report}")
