"""`stallmark run`: run a scenario."""

import sys
from pathlib import Path

import click
import humanize

from stallmark.cli.common import CONDITION_BROKEN, INCOMPLETE, err, escape, json_option, target_options, tell
from stallmark.cli.report import show_report
from stallmark.driver.cluster.join import MASTER_PORT, ExpectedMachines
from stallmark.errors import CallFailed, StallmarkError
from stallmark.experiment.progress import Show
from stallmark.experiment.stopping import Stopped


@click.command()
@click.argument("scenario")
@target_options
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change the scenario: --set measure=60s.")
@click.option(
    "--out", "out_dir", type=click.Path(path_type=Path), default=Path("stallmark-runs"), show_default=True,
    help="Where the run records go.",
)  # fmt: skip
@click.option("--web", "web_port", type=click.IntRange(1, 65535), help="Show Locust's web page on this port.")
@click.option(
    "--expect-workers", type=click.IntRange(1), metavar="N",
    help="Drive from N load machines, each of which runs `stallmark worker`. Then no users run here.",
)  # fmt: skip
@click.option("--master-bind-host", default="*", show_default=True, help="The address that load machines connect to.")
@click.option("--master-bind-port", type=click.IntRange(1, 65535), default=MASTER_PORT, show_default=True)
@json_option
def run(
    scenario: str, target, overrides: tuple[str, ...], out_dir: Path, web_port: int | None, expect_workers: int | None,
    master_bind_host: str, master_bind_port: int, as_json: bool,
) -> None:  # fmt: skip
    """Run a SCENARIO: one of `stallmark list`, or a YAML file of yours."""
    from stallmark.experiment.runner import Runner
    from stallmark.scenarios.model import ProbeScenario, QueryScenario
    from stallmark.scenarios.read import read_any_scenario

    model = read_any_scenario(scenario, overrides)
    show = Show(err)
    if isinstance(model, ProbeScenario):
        from stallmark.cli.probe import run_probe_scenario

        run_probe_scenario(model, target, out_dir, show, as_json, others=bool(web_port or expect_workers))
        return
    runs = len(model.run_order())
    if isinstance(model, QueryScenario):
        how_long = ": queries, each to its end"
    else:
        at_most = "at most " if model.timeline().warm_up_limits else ""
        how_long = f", {at_most}{humanize.precisedelta(round(model.run_seconds()))} of load in all"
    show.say(f"{model.title}: {model.answers}")
    show.say(f"{runs} run{'s' if runs > 1 else ''}{how_long}")
    with target.engine(model.workload, model) as engine:
        expected = ExpectedMachines(expect_workers, master_bind_host, master_bind_port) if expect_workers else None
        runner = Runner(model, engine, out_dir, show, web_port, expected)
        try:
            finished = runner.run()
        except (Stopped, StallmarkError, CallFailed):
            if runner.folder.exists():
                show_report([runner.folder], runner.folder / "report.html", as_json)
            raise
    show_report([runner.folder], runner.folder / "report.html", as_json)
    if because := finished.incomplete_because:
        tell(err, f"[bold red]Incomplete:[/] {escape(because)}{'' if because.endswith('?') else '.'}")
        sys.exit(INCOMPLETE)
    if not finished.conditions_hold:
        sys.exit(CONDITION_BROKEN)
