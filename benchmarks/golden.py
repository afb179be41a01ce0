"""The golden check: what commands show of frozen records is what they showed before.

    python -m benchmarks.golden                       all records; prints each difference, and exits with 1 after any
    python -m benchmarks.golden repeats loads         these alone
    python -m benchmarks.golden --accept              take what is shown now as expected
    python -m benchmarks.golden NAME --freeze FOLDER  add a record: pack FOLDER, which the commands of CASES[NAME] find

tests/golden/NAME.tar.xz is a record as a Stallmark of its day wrote it, and is never made anew. NAME.json is what the
commands show of it: JSON, the text of pages, their charts, Markdown, the terminal. Numbers may differ by 1e-9 of their
value, texts in no line. Nothing of it depends on time, machine, folder, version or terminal: `main` sets these.
"""

import argparse
import base64
import difflib
import json
import lzma
import math
import os
import re
import shlex
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.html_page import Page, figures_of

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
REPORT = ("report runs --json --out report.html", "report runs --out report.html")
COMPARE = ("compare runs --json --out comparison.html", "compare runs --markdown ticket.md --out comparison.html")
PROFILE = ("report profile --json --out report.html", "report profile --out report.html")
LOCALITY = ("characterise runs --json --page page.html", "characterise runs --page page.html")
SELECT = tuple(
    f"sql runs{form} 'select run, wait_class, sum(samples / polls) as users from waits group by all order by all'"
    for form in ("", " --csv", " --json")
)
SIZE = "size profile b c --today today --growth 1.1"
CASES: dict[str, tuple[str, ...]] = {
    # runs of transactions
    "pools": (*REPORT, "whatif runs"),
    "repeats": (REPORT[0], *COMPARE, "plan runs --json", "plan runs", "whatif runs --json", *SELECT),
    "ramp": REPORT,
    "open": REPORT,
    "brokerage": (*REPORT, *COMPARE),
    "flash": (*REPORT, COMPARE[1]),
    "array": (*REPORT, *COMPARE),
    "beside": (*REPORT, COMPARE[1]),
    "attached": (*REPORT, "export runs/01 --csv tables"),
    "experiment": ("status runs --json", "status runs", "live runs", "runs buffer-pool --out .", "runs --json --out ."),
    "real": (*REPORT, COMPARE[1], "status runs --json"),
    "sqlserver": (*REPORT, *COMPARE),
    "sqlserver_databases": REPORT,
    # ended early, or not yet
    "killed": (*REPORT, "status runs --json", "live runs"),
    "cut_in_warm_up": REPORT,
    "reset": REPORT,
    "nothing_collected": REPORT,
    # of other kinds
    "ceiling": (*REPORT, "report runs --fail-if 'ceiling below 2000 users'"),
    "loads": (*REPORT, COMPARE[1]),
    "cells": REPORT,
    "due_queries": REPORT,
    "power": REPORT,
    "each_query": REPORT,
    "throughput": REPORT,
    "probe": REPORT,
    "locality": LOCALITY,
    "traced": LOCALITY,
    "selftest": REPORT,
    # profiles and sizings
    "profile": PROFILE,
    "profile_mssql": PROFILE,
    "profile_postgres": PROFILE,
    "profile_running": PROFILE,
    "sizing": (
        *(f"{SIZE} --json --out sizing.html", f"{SIZE} --out sizing.html", "size profile c"),
        *("report b --json --out report.html", "status c"),
    ),
    # files of other tools
    "import": tuple(
        f"profile --from {file} --out {file.replace('.', '_')} --timezone UTC {more} --json"
        for file, more in {
            "perfmon.csv": "--class D:=data --class L:=log", "prometheus.json": "", "prometheus_rows.csv": "",
            "grafana.csv": "", "iostat.json": "--dates month-first", "iostat.txt": "--dates month-first",
            "rds.csv": "--map ReadIOPS=reads_per_s --map ReadThroughput=read_bytes_per_s --map ReadLatency=read_s",
            "sadf.json": "", "sadf.csv": "", "sar.txt": "--dates month-first",
        }.items()
    ),
    "attach": (
        "attach runs/01 perfmon.csv --json",
        "attach runs/01 iostat.json --timezone UTC --json",
        "attach runs/01 array.csv --json",
        REPORT[0],
    ),
}  # fmt: skip
"""The commands that are asked of each record. `live` stands for the page's state, lines and metrics."""
TOLERANCE, DIGITS, MOST = 1e-9, 12, 40
VERSION, WIDTH = "0.1.0", "100"
SILENT_S = 3 * 3600 + 30.0
"""Seconds since a record was written, for `status`: in no rounding of a duration a second more or less is seen."""
BLOCKS = {
    *("p", "li", "tr", "div", "section", "summary", "details", "figcaption", "table", "caption", "dt", "dd", "title"),
    *("h1", "h2", "h3", "h4", "text", "header", "footer", "nav", "ul", "ol", "button", "label", "option"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--accept", action="store_true", help="take what is shown now as expected")
    parser.add_argument("--freeze", type=Path, metavar="FOLDER", help="pack this folder as the record NAME")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in CASES]:
        parser.error(f"{unknown[0]} is not in CASES")
    if asked.freeze and len(asked.names) != 1:
        parser.error("--freeze needs one NAME")
    if asked.freeze:
        freeze(asked.freeze, GOLDEN / f"{asked.names[0]}.tar.xz")
    differ = 0
    with tempfile.TemporaryDirectory() as scratch:
        same_everywhere(Path(scratch) / "home")
        for name in asked.names or CASES:
            shown = json.loads(json.dumps(rounded(show(name, Path(scratch).resolve() / name))))
            file = GOLDEN / f"{name}.json"
            expected = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            found = list(differences(expected, shown))
            for line in found[:MOST]:
                print(f"{name}{line}"[:300])
            if len(found) > MOST:
                print(f"{name}: {len(found) - MOST} more differences")
            if found and asked.accept:
                file.write_text(f"{written(shown)}\n", encoding="utf-8")
            differ += bool(found)
    print(f"{differ} of {len(asked.names or CASES)} records differ{', and were accepted' * asked.accept}.")
    return 1 if differ and not asked.accept else 0


def same_everywhere(home: Path) -> None:
    """Take from the environment what would show: home, zone, language and width of the terminal."""
    path = os.environ["PATH"]
    os.environ.clear()
    os.environ.update(PATH=path, HOME=str(home), TZ="UTC", LANG="C.UTF-8", COLUMNS=WIDTH, LINES="50", TERM="xterm")
    time.tzset()
    import stallmark

    stallmark.__version__ = VERSION


def freeze(folder: Path, target: Path) -> None:
    """Pack a folder; the same files give the same bytes."""
    target.parent.mkdir(exist_ok=True)
    with lzma.open(target, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            about = tarfile.TarInfo(path.relative_to(folder).as_posix())
            if path.is_dir():
                about.type, about.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(about)
            else:
                about.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(about, file)


def show(name: str, folder: Path) -> dict[str, Any]:
    """Return by command what it shows of a record, which is unpacked into `folder`."""
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    written_at = time.time() - SILENT_S
    for path in folder.rglob("*"):
        os.utime(path, (written_at, written_at))
    os.chdir(folder)
    from support.read_once import Kept, summaries_in

    shown: dict[str, Any] = {}
    pages: set[str] = set()
    kept: Kept = {}
    for command in CASES[name]:
        what, *arguments = shlex.split(command)
        with summaries_in(kept):
            shown[command] = live(Path(arguments[0])) if what == "live" else printed(command)
        for file in sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".md")):
            text = file.read_text(encoding="utf-8")
            file.unlink()
            if text not in pages:
                pages.add(text)
                shown[command][str(file.relative_to(folder))] = page(text) if file.suffix == ".html" else lines(text)
        if what == "export":
            tables = {path.name: lines(path.read_text()) for path in sorted(folder.glob("tables/*.csv"))}
            shown[command] |= {name: [len(rows), rows[0], rows[1:][:1], rows[-1]] for name, rows in tables.items()}
    return shown


def printed(command: str) -> dict[str, Any]:
    """Return the exit code and the output of a command: JSON as such, else lines."""
    from support.command_line import stallmark

    done = stallmark(*shlex.split(command))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    found: dict[str, Any] = {"exit": done.exit_code}
    try:
        found["json"] = settled(json.loads(_anywhere(done.stdout)))
    except ValueError:
        found["output"] = lines(done.stdout)
    return found | ({"errors": lines(done.stderr)} if done.stderr else {})


def settled(shown: Any) -> Any:
    """Leave out of a command's JSON what is counted from now, and how large Arrow made the tables of an import."""
    if isinstance(shown, dict) and "silent_s" in shown:
        shown = {key: value for key, value in shown.items() if key != "silent_s"}
        shown["now"] = {key: value for key, value in (shown["now"] or {}).items() if key != "elapsed_s"}
    if isinstance(shown, dict) and shown.get("kind") == "profile":
        shown["manifest"]["tables"] = sorted(shown["manifest"]["tables"])
    return shown


def live(folder: Path) -> dict[str, Any]:
    """Return what the live page is sent of an experiment, once all its runs were read."""
    from stallmark.live.metrics import exposition
    from stallmark.live.server import lines as drawn
    from stallmark.live.server import state
    from stallmark.live.view import View

    view = View(folder)
    for _ in range(1 + len(list(folder.iterdir()))):
        seen = view.look()
    sent = state(seen)
    del sent["at"]
    runs = {str(number): digest(drawn(run)) for number, run in seen.runs.items() if run.sums}
    sent["lines"] = digest(sent["lines"])
    return {"state": sent, "lines": runs, "metrics": lines(exposition(seen).decode())}


class Lines(Page):
    """A page whose `lines` are those that a reader sees; what a tag says beside its text stands in brackets."""

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag in BLOCKS:
            self.words.append("\n")
        self.words += [f" [{text}] " for name, text in attrs if name in ("title", "alt", "aria-label") and text]

    def handle_endtag(self, tag):
        super().handle_endtag(tag)
        if tag in BLOCKS or tag in ("td", "th"):
            self.words.append("\n" if tag in BLOCKS else "| ")

    def handle_data(self, data):
        super().handle_data(re.sub(r"\s+", " ", data))

    @property
    def lines(self) -> list[str]:
        return [line for line in (" ".join(words.split()) for words in "".join(self.words).split("\n")) if line]


def page(html: str) -> dict[str, Any]:
    """Return the text of a page and its charts. Raise ValueError for what Plotly does not know of a chart."""
    charts = figures_of(html) if 'id="figures">' in html else {}
    for chart in charts.values():
        go.Figure(chart["data"], chart["layout"])
    return {"text": Lines(_anywhere(html)).lines, "charts": digest(charts)}


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in _anywhere(text).splitlines()]


def _anywhere(text: str) -> str:
    """Return a text without the folder that the commands work in."""
    return text.replace(str(Path.cwd()), "/golden")


def digest(value: Any) -> Any:
    """Return a chart with a few numbers in place of long lists: how many values there are, how many of them are known,
    their sum, and the sum of each times its place."""
    if isinstance(value, dict):
        return digest(_unpacked(value)) if "bdata" in value else {str(key): digest(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) <= 8:
        return [digest(one) for one in value]
    if all(isinstance(one, list) for one in value):
        return {"columns": [digest(list(column)) for column in zip_longest(*value)]}
    if all(one is None or isinstance(one, int | float) for one in value):
        known = {place: one for place, one in enumerate(value) if one is not None and math.isfinite(one)}
        sums = math.fsum(known.values()), math.fsum(place * one for place, one in known.items())
        return {"values": len(value), "known": len(known), "sum": sums[0], "by place": sums[1]}
    if all(isinstance(one, dict) for one in value):
        names = dict.fromkeys(name for one in value for name in one)
        return {"values": len(value)} | {name: digest([one.get(name) for one in value]) for name in names}
    text = json.dumps(rounded(value), sort_keys=True)
    return {"values": len(value), "first": digest(value[0]), "crc32": zlib.crc32(text.encode())}


def _unpacked(packed: dict[str, Any]) -> list[Any]:
    import numpy as np

    values = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    shape = [int(size) for size in str(packed.get("shape", len(values))).split(",")]
    return values.reshape(shape).tolist()


def rounded(value: Any) -> Any:
    """Return a value as it is kept: numbers with 12 digits, None for one that is none."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def differences(expected: Any, shown: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each difference: its path, what was expected and what is shown."""
    if isinstance(expected, dict) and isinstance(shown, dict):
        for key in {**expected, **shown}:
            if key not in shown or key not in expected:
                yield f"{path} · {key}: {'gone' if key in expected else 'new'}"
            else:
                yield from differences(expected[key], shown[key], f"{path} · {key}")
    elif isinstance(expected, list) and isinstance(shown, list):
        if expected != shown and all(isinstance(one, str) for one in (*expected, *shown)):
            changed = [*difflib.unified_diff(expected, shown, lineterm="", n=0)][2:]
            yield from (f"{path}: {line}" for line in changed if line[0] != "@")
            return
        if len(expected) != len(shown):
            yield f"{path}: {len(expected)} items, now {len(shown)}"
        for place, pair in enumerate(zip(expected, shown, strict=False)):
            yield from differences(*pair, f"{path}[{place}]")
    elif _is_number(expected) and _is_number(shown):
        if not math.isclose(expected, shown, rel_tol=TOLERANCE, abs_tol=1e-12):
            yield f"{path}: {expected}, now {shown}"
    elif expected != shown or type(expected) is not type(shown):
        yield f"{path}: {expected!r}, now {shown!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def written(value: Any, indent: str = "") -> str:
    """Return JSON in lines: a value that fits into one has one."""
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    whole = json.dumps(value, ensure_ascii=False)
    if len(whole) + len(indent) < 120 and (isinstance(value, dict) or not isinstance(value[0], str)):
        return whole
    more = indent + " "
    if isinstance(value, list):
        first, inner, last = "[", [written(one, more) for one in value], "]"
    else:
        first, inner, last = "{", [f"{json.dumps(key)}: {written(one, more)}" for key, one in value.items()], "}"
    return f"{first}\n{more}" + f",\n{more}".join(inner) + f"\n{indent}{last}"


if __name__ == "__main__":
    sys.exit(main())
