"""Run the six experiments, and print their claims as tables or write them into the page."""

import argparse
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from benchmarks.published import __doc__ as usage
from benchmarks.published.chart import Run, table

from stallmark.record.reader import Record, find_records

NAMES = ("e1", "e2", "e3", "e4", "e5", "e6")
PAGE = "published-experiments.md"
THRESHOLD_BROKEN = 5
"""The exit code of `stallmark run` if a limit was not kept, which claims may be about."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(usage or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--judge", action="store_true", help="judge the records of an earlier run")
    parser.add_argument("--again", type=Path, help="a folder of other runs, whose figures stand in brackets")
    parser.add_argument("--page", type=Path, help="a folder of documents with the page")
    options = parser.parse_args()
    for name in options.only:
        experiment = importlib.import_module(f"benchmarks.published.{name}")
        if not options.judge:
            for run_name, run in experiment.RUNS.items():
                _make(run, options.folder / name / run_name)
        records = _records(experiment, options.folder / name)
        again = experiment.claims(_records(experiment, options.again / name)) if options.again else ()
        rows = list(table(experiment.claims(records), again))
        print(f"\n{name.upper()}: {(experiment.__doc__ or '').strip()}\n", *rows, sep="\n")
        if options.page:
            _write(options.page, name, rows, experiment.chart(records))


def _records(experiment: ModuleType, folder: Path) -> dict[str, list[Record]]:
    """Return the newest records of each run."""
    return {name: find_records([max((folder / name).iterdir())]) for name in experiment.RUNS}


def _make(run: Run, folder: Path) -> None:
    settings = [part for setting in run.settings for part in ("--set", setting)]
    command = [str(Path(sys.executable).with_name("stallmark")), "run", run.scenario, *settings, "--out", str(folder)]
    ended = subprocess.run(command, check=False)
    if ended.returncode not in (0, THRESHOLD_BROKEN):
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}.")


def _write(folder: Path, name: str, rows: list[str], chart: str) -> None:
    """Put table and chart of an experiment between its marks in the page."""
    page, drawing = folder / PAGE, folder / f"published-{name}.svg"
    drawing.write_text(chart)
    made = "\n".join([f"![{name.upper()}]({drawing.name})", "", *rows])
    between = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    text, times = between.subn(lambda marks: f"{marks[1]}{made}\n{marks[2]}", page.read_text())
    if not times:
        sys.exit(f"{page} has no marks <!-- {name} --> and <!-- /{name} -->.")
    page.write_text(text)


if __name__ == "__main__":
    main()
