"""`stallmark probe`, and the scenarios of probes that `stallmark run` runs."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from stallmark.cli.command import Command
from stallmark.cli.options import FiniteRange, json_option, out_option, parsing, quiet_option, timezone_option
from stallmark.cli.output import Outputs, progress_console
from stallmark.cli.report import reporting, show_report
from stallmark.errors import StallmarkError, WrongOption
from stallmark.experiment import LoadMachines, OwnExperiment
from stallmark.experiment.progress import Show

if TYPE_CHECKING:
    from stallmark.experiment.target import Target
    from stallmark.probe.scenario import ProbeScenario
    from stallmark.scenarios import Titled


@parsing
def _depths(text: str) -> tuple[int, ...]:
    from stallmark.storage.fio import MOST_OUTSTANDING

    parts = re.split(r"[,\s]+", text.strip())
    if not all(part.isdecimal() and 1 <= int(part) <= MOST_OUTSTANDING for part in parts):
        raise ValueError(f"{text!r}: write numbers from 1 to {MOST_OUTSTANDING}, as in 1,2,4,8")
    return tuple(sorted({int(part) for part in parts}))


@parsing
def _size(text: str) -> int:
    from stallmark.quantities import parse_size
    from stallmark.storage.probe_file import refuse_small

    size_bytes = parse_size(text, like="4GiB")
    refuse_small(size_bytes)
    return size_bytes


@click.command(cls=Command)
@click.argument("place", type=click.Path(path_type=Path))
@click.option("--size", "size_bytes", default="4GiB", show_default=True, callback=_size, help="Size of the test file.")
@click.option(
    "--pattern", "names", multiple=True, metavar="NAME",
    help="Run only this pattern, such as 8k-random-read; repeatable [default: all].",
)  # fmt: skip
@click.option(
    "--outstanding", "depths", default="1,2,4,8,16,32", show_default=True, callback=_depths,
    help="Numbers of outstanding I/Os, a step for each.",
)  # fmt: skip
@click.option("--seconds", type=FiniteRange(1, 86_400), default=10.0, show_default=True, help="Duration of each step.")
@click.option("--i-know", is_flag=True, help="Allow PLACE to be an existing file or device, which is only read.")
@out_option("Folder for the record.")
@timezone_option()
@quiet_option
@json_option
def probe(
    place: Path, size_bytes: int, names: tuple[str, ...], depths: tuple[int, ...], seconds: float, i_know: bool,
    out_dir: Path, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Measure raw storage without a database, as SQLIO does, with fio (Windows: diskspd).

    PLACE is a folder on that storage. A file is made there and filled, then read and written in every pattern from few
    to many outstanding I/Os, and removed. Nothing else is ever written: an existing file or device is only read, and
    only with --i-know.
    """
    from stallmark.probe.runner import ProbePlace, record_probe, shown_file, step_callback
    from stallmark.record.files import refuse_unwritable
    from stallmark.record.manifest.course import Scenario, Variant
    from stallmark.record.manifest.storage import Asked
    from stallmark.record.writer import experiment_folder
    from stallmark.storage.fio import find_patterns, steps_of
    from stallmark.storage.probe import now, refuse_memory
    from stallmark.storage.probe_file import existing_file
    from stallmark.storage.programs import find_tool

    show = Show(progress_console(quiet))
    # Not created: a forgotten mount would make us measure the disk under the mount point.
    if not place.exists():
        raise StallmarkError(f"The folder {place} does not exist: name a folder on the storage to measure.")
    # Checked before gigabytes are written in vain.
    refuse_unwritable(out_dir, "name another folder for the record with --out")
    find_tool(emulated=False)
    refuse_memory(place)
    patterns = find_patterns(names)
    is_folder = place.is_dir()
    if not is_folder:
        patterns = _only_reads(place, patterns, named=bool(names))
    steps: tuple[Asked, ...] = steps_of(patterns, depths)
    opened = shown_file(show, str(place), place, size_bytes) if is_folder else existing_file(place, size_bytes, i_know)
    folder = experiment_folder(out_dir, "probe")
    # Steps measured before Ctrl-C are shown as well.
    with (
        reporting(
            lambda: show_report([folder], Outputs(folder / "report.html", as_json)),
            (folder / "manifest.json").exists,
            show.say,
        ),
        opened as file,
        show.bar(f"{place}: probing", seconds * len(steps)),
    ):
        made = ProbePlace(folder.name, 1, Scenario(name="probe"), Variant(name=file.place))
        record_probe(folder, made, file, steps, seconds, now(), None, step_callback(show, seconds))


class ProbesOfScenario(OwnExperiment):
    """The probes of a scenario about raw storage."""

    def takes(self, scenario: "Titled") -> bool:
        from stallmark.probe.scenario import ProbeScenario

        return isinstance(scenario, ProbeScenario)

    def run(
        self,
        scenario: "ProbeScenario",
        target: "Target",
        out: Path,
        show: Show,
        machines: LoadMachines | None,
        as_json: bool,
    ) -> None:
        from stallmark.experiment.estimate import estimate
        from stallmark.experiment.target import home
        from stallmark.probe.runner import RawRunner
        from stallmark.report.text import experiment

        typed = click.get_current_context().get_parameter_source("server") is ParameterSource.COMMANDLINE
        # STALLMARK_SERVER may be set for other commands, so only a URL on the command line is an error.
        if machines or typed or replace(target, url=None) != type(target)():
            raise WrongOption(
                f"{scenario.name} probes raw storage: only --set, --out and --json of `run` apply; "
                "name a folder on real storage with `stallmark probe FOLDER`, or as a variant's `folder`."
            )
        show.say(f"{scenario.title or scenario.name}: {scenario.answers}")
        expected, many = estimate(scenario), len(scenario.variants)
        text = experiment.takes(expected.total_s, 0.0)
        show.say(experiment.work_and_duration(f"{many} probe{'s' * (many > 1)}", many * expected.load_s, text))
        runner = RawRunner(scenario, home(), out, show)
        with reporting(
            lambda: show_report([runner.folder], Outputs(runner.folder / "report.html", as_json)),
            lambda: any(runner.folder.glob("*/manifest.json")),
            show.say,
        ):
            runner.run()


# It adds no option to `run`: the scenario alone decides.
@click.command()
def scenarios() -> ProbesOfScenario:
    return ProbesOfScenario()


def _only_reads(place: Path, patterns: list, *, named: bool) -> list:
    reads = [pattern for pattern in patterns if pattern.reads]
    if named and len(reads) < len(patterns):
        raise WrongOption(
            f"{place} exists, and a probe writes only to files that it made: leave the write patterns out, or name "
            "a folder on that storage."
        )
    return reads
