"""Run the six experiments, and print their claims as tables or write them into the page."""

import argparse
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from benchmarks.published import __doc__ as usage
from benchmarks.published.claims import Claim, table

from stallmark.record.reader import find_records

NAMES = ("e1", "e2", "e3", "e4", "e5", "e6")
PAGE = "published-experiments.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=(usage or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--judge", action="store_true", help="judge the records of an earlier run")
    parser.add_argument("--page", type=Path, help="a folder of documents with the page")
    options = parser.parse_args()
    for name in options.only:
        experiment = importlib.import_module(f"benchmarks.published.{name}")
        if not options.judge:
            _run(experiment, options.folder / name)
        records = find_records([options.folder / name])
        claims = experiment.claims(records)
        print(f"\n{name.upper()}: {(experiment.__doc__ or '').strip()}\n", *table(claims), sep="\n")
        if options.page:
            _write(options.page, name, claims, experiment.chart(records))


def _run(experiment: ModuleType, folder: Path) -> None:
    settings = [part for setting in experiment.SETTINGS for part in ("--set", setting)]
    command = [sys.executable, "-m", "stallmark", "run", experiment.SCENARIO, *settings, "--out", str(folder)]
    ended = subprocess.run(command, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}.")


def _write(folder: Path, name: str, claims: list[Claim], chart: str) -> None:
    """Put table and chart of an experiment between its marks in the page."""
    page, drawn = folder / PAGE, folder / f"published-{name}.svg"
    drawn.write_text(chart)
    made = "\n".join([f"![{name.upper()}]({drawn.name})", "", *table(claims)])
    between = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    text, times = between.subn(lambda marks: f"{marks[1]}{made}\n{marks[2]}", page.read_text())
    if not times:
        sys.exit(f"{page} has no marks <!-- {name} --> and <!-- /{name} -->.")
    page.write_text(text)


if __name__ == "__main__":
    main()
