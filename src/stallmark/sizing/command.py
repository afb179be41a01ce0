"""The command `stallmark size`, which ranks candidates for a profile's load, and the run that tries one candidate."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark import format
from stallmark.cli.command import Command
from stallmark.cli.exit_codes import INCOMPLETE, VERDICT
from stallmark.cli.options import FiniteRange, json_option, markdown_option, parsing, timezone_option
from stallmark.cli.output import STANDARD_OUTPUT, Outputs, err, page_file, print_markup
from stallmark.cli.report import report_if_possible, show_report
from stallmark.cli.runs import Progress
from stallmark.errors import CallFailed, StallmarkError, WrongOption, as_sentence
from stallmark.experiment import LoadMachines, OwnExperiment
from stallmark.experiment.progress import Phase, Show
from stallmark.stopping import StopSignal

if TYPE_CHECKING:
    from stallmark.experiment.target import Target
    from stallmark.record.manifest.storage import ServiceLevelObjective
    from stallmark.scenarios import Titled
    from stallmark.sizing.scenario import SizingScenario


@parsing
def _level(text: str) -> "ServiceLevelObjective":
    from pydantic import TypeAdapter, ValidationError

    from stallmark.analysis.service_level import READY_MADE
    from stallmark.scenarios.load import ServiceLevelChoice, objective

    given = text if text in READY_MADE else {"read": text}
    try:
        return objective(TypeAdapter(ServiceLevelChoice).validate_python(given))
    except ValidationError:
        raise ValueError(f"{text} is not a service level: write {', '.join(READY_MADE)} or a time as 10ms") from None


@click.command(cls=Command)
@click.argument("profile", type=click.Path(path_type=Path))
@click.argument("candidates", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="CANDIDATE...")
@click.option(
    "--percentile", type=click.Choice(["p90", "p95", "p99", "max"]),
    help="Percentile of the profile’s minutes (by I/Os per second) to size for [default: the busiest window].",
)  # fmt: skip
@click.option(
    "--growth", type=FiniteRange(0, min_open=True), default=1.0, show_default=True,
    help="Multiple of the profile’s load that the new hardware is to carry.",
)  # fmt: skip
@click.option(
    "--slo", "level", callback=_level, metavar="LEVEL",
    help="Service level of reads: oltp, dss, mail, or a time such as 10ms [default: that of the sizing runs].",
)  # fmt: skip
@click.option("--today", type=click.Path(path_type=Path), help="Sizing folder of the hardware in use today.")
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="HTML file to write [default: sizing.html in CANDIDATE, none with --json].",
)  # fmt: skip
@markdown_option
@timezone_option()
@json_option
def size(
    profile: Path, candidates: tuple[Path, ...], percentile: str | None, growth: float,
    level: "ServiceLevelObjective | None", today: Path | None, target: Path | None, markdown: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show which candidates carry the load of a PROFILE, with how much headroom, and their first limit.

    A CANDIDATE is the folder that `stallmark run sizing --profile PROFILE` made on the new hardware. Exit code 5 means
    that no candidate carries the load.
    """
    from stallmark.report.text import sentence
    from stallmark.sizing import summary
    from stallmark.sizing.document import sizing_document, sizing_in_json

    page = target or page_file(candidates[0], "sizing.html", for_machines=as_json or markdown == STANDARD_OUTPUT)
    outputs = Outputs(page, as_json, markdown=markdown)
    outputs.refuse()
    result = summary.size(profile, candidates, percentile, growth, level, today)
    outputs.show(result, sizing_document, sizing_in_json)
    if not result.any_carries:
        print_markup(err, f"[bold red]Failed:[/] {escape(' '.join(map(sentence, result.answers)))}")
        sys.exit(VERDICT)


def progress(folder: Path) -> Progress:
    """Return the progress of the sizing in a folder."""
    from stallmark.sizing.manifest import read_sizing
    from stallmark.sizing.wording import progress

    made = read_sizing(folder)
    begun = f"{made.candidate.name} ({folder}), begun {format.moment(made.started)}"
    return Progress([begun, progress(made)], {"sizing": made.model_dump(mode="json")})


# The run of a sizing: `stallmark run sizing --profile DIR`.


class SizingForProfile(OwnExperiment):
    """The sizing of a server and its storage for the load of a profile."""

    def __init__(self, profile: Path | None):
        self._profile = profile

    def takes(self, scenario: "Titled") -> bool:
        from stallmark.sizing.scenario import SizingScenario

        if not isinstance(scenario, SizingScenario):
            if self._profile:
                raise WrongOption(
                    f"{scenario.name} is not a sizing, and only a sizing takes --profile: omit it, or run `sizing`."
                )
            return False
        if self._profile is None:
            raise WrongOption(f"{scenario.name} sizes for the load of a profile: name its folder with --profile.")
        return True

    def run(
        self,
        scenario: "SizingScenario",
        target: "Target",
        out: Path,
        show: Show,
        machines: LoadMachines | None,
        as_json: bool,
    ) -> None:
        """Measure what a server and its storage carry of the load of a profile, and show it."""
        from stallmark.loaders.warehouse import command
        from stallmark.report.text import experiment
        from stallmark.sizing.demand import demand_of
        from stallmark.sizing.runner import SizingRunner
        from stallmark.sizing.scenario import estimate_sizing
        from stallmark.storage.programs import find_tool

        assert self._profile
        [variant] = scenario.variants
        find_tool(emulated=scenario.emulates(variant))  # before a database is built for nothing
        if scenario.queries and target.is_absent(scenario.contents):
            # A missing data generator is reported before the replay, not after it.
            command()
        demand = demand_of(self._profile, window_s=scenario.replay.window)
        show.say(": ".join(filter(None, (scenario.title or scenario.name, scenario.answers))))
        absent = float(target.is_absent(scenario.contents))
        expects = estimate_sizing(scenario, to_build=absent, windows=len(demand.windows))
        assert expects
        show.say(f"It takes {experiment.takes(expects.total_s, expects.build_s, at_most=True)}.")
        runner = None
        try:
            with target.engine(scenario.contents, scenario) as engine:
                runner = SizingRunner(scenario, demand, engine, out, show, machines)
                because = runner.run()
        except (StopSignal, StallmarkError, CallFailed, OSError):
            if runner and runner.has_results:
                show.enter(Phase.REPORTING)
                report_if_possible(lambda: _report(runner.folder, as_json), show.say)
            raise
        show.enter(Phase.REPORTING)
        if not because:
            _report(runner.folder, as_json)
        else:
            report_if_possible(lambda: _report(runner.folder, as_json), show.say)
            print_markup(err, f"[bold red]Incomplete:[/] {escape(as_sentence(because))}")
            sys.exit(INCOMPLETE)


@click.command()
@click.option(
    "--profile", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="Profile whose load the server and its storage are to carry (scenarios of kind sizing).",
)  # fmt: skip
def sizing(profile: Path | None) -> SizingForProfile:
    return SizingForProfile(profile)


def _report(folder: Path, as_json: bool) -> None:
    show_report([folder], Outputs(folder / "report.html", as_json))
