"""The walks of a newcomer: how many files lie between a question and its answer.

    python -m benchmarks.walks            a line for each walk
    python -m benchmarks.walks --files    the files too

A figure's walk goes through the functions and classes of FIGURES, in their order. They are looked up by their names: a
walk survives a move, and ends the command if a name is gone. Between two of them it takes the shortest way of imports.

The other walks count the files that name a thing of today, and so those that the next such thing would touch: Python,
SQL and templates of the package, and pyproject.toml. A file counts if its own name has the thing's, or its code names
it: its classes, functions, tables, columns, or its word as a string. Docstrings, comments, tests, documentation,
scenarios and generated schemas do not count. Each file of the thing's own counts, a folder of its own once. Files that
name a thing only as an example, or for older records, count too.
"""

import argparse
import ast
import os
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src/stallmark"
FIGURES = {
    "latency of a commit → p99 bar on the page": (
        *(
            "driver:Client",
            "driver:LoadUsers",
            "driver:transaction_rows",
            "driver:Drive",
            "RecordWriter",
            "record/schema:TABLES",
        ),
        *("Record", "DriverTables", "TransactionSummary", "StepSummary", "transaction_figures", "experiment_document"),
        *("report:render", "report/templates/blocks.html"),
    ),
    "read stall of a file: its .sql → page": (
        *("collectors/mssql/server_io.14.sql", "collectors/mssql:ServerIO", "Sampler", "RecordWriter"),
        *("record/schema:TABLES", "Record", "ServerIo", "FileSummary", "StepSummary", "report/sections:files"),
        *("experiment_document", "report:render", "report/templates/blocks.html"),
    ),
}
"""The stages of a figure, from where it is measured to where it is shown: names, with a part of the path if several
files have them."""
NAMED = {
    "a collector, stored and shown (log space)": r"\b(LogSpace|log_space|dm_db_log_space_usage|reuse_wait|kept_by)\b",
    "a finding with its sentence (executor's CPU)": r"\bEXECUTOR_CPU\b",
    "a workload (bank)": r"'bank'|\b(schema|loaders|transactions)[./]bank\b",
    "a workload with a history to judge (brokerage)": (
        r"'brokerage'|\b(schema|loaders|transactions)[./]brokerage\b|'TPC-E'|[Tt]rade_?[Hh]istory|SHALLOW"
    ),
    "a workload with a unit of I/O (mail)": r"\b(schema|loaders|transactions)[./]mail\b|'mail': '|[Mm]ailbox|MailIo",
    "a workload of queries (warehouse)": r"'warehouse'|\b(schema|loaders|transactions)[./]warehouse\b",
    "a kind of run (probe)": (
        r"\bProbe(Scenario|Variant|Steps|Manifest|Plan|Place|Run|Experiment)\b|\bPROBES?\b|\bSaturation"
        r"|\bprobe_(plan|document|steps|histogram|windows)\b|\b(run|record|summarise|estimate|read)_probes?\b"
        r"|\bRawRunner\b|'probe': '[A-Z]|'probe', 'profile'|`stallmark probe\b|(^|\bstallmark[./])probe[./]"
    ),
    "a kind of experiment (sizing)": r"(?<!-)\bsizing\b|\bSizing|\bSIZING\b",
}
"""Names of a thing of today, as its files and its code have them. A kind of run is also made around other runs: the
comparisons of those are not counted."""
FOLDERS = re.compile(r"(schema|loaders|transactions)/(bank|brokerage|mail|warehouse)/|(probe|sizing)/")
"""The folders of such things."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="name the files of each walk")
    asked = parser.parse_args()
    house = House(PACKAGE)
    walks = {name: house.walk(stages) for name, stages in FIGURES.items()}
    walks |= {name: house.naming(words) for name, words in NAMED.items()}
    for name, files in walks.items():
        print(f"{len(files):>3}  {name}")
        if asked.files:
            print("".join(f"       {file}\n" for file in files), end="")
    return 0


class House:
    """The files of a package, what each defines and imports."""

    def __init__(self, root: Path):
        paths = {path.relative_to(root).as_posix(): path for path in _files(root)}
        paths["pyproject.toml"] = root.parent.parent / "pyproject.toml"
        self._code = {file: path.read_text(encoding="utf-8") for file, path in paths.items()}
        trees = {file: ast.parse(text) for file, text in self._code.items() if file.endswith(".py")}
        self._code |= {file: ast.unparse(_Undocumented().visit(tree)) for file, tree in trees.items()}
        self._modules = {_module(file, root.name): file for file in trees}
        self._defining: dict[str, list[str]] = defaultdict(list)
        self._neighbours: dict[str, set[str]] = defaultdict(set)
        for file, tree in trees.items():
            for name in _defined(tree):
                self._defining[name].append(file)
            for module in _imported(tree):
                if (other := self._modules.get(module)) and other != file:
                    self._neighbours[file].add(other)
                    self._neighbours[other].add(file)

    def walk(self, stages: Iterable[str]) -> list[str]:
        """Return the files on the way through these names, each once. Exit if one is not defined once."""
        files: list[str] = []
        for stage in stages:
            file = self._file(stage)
            way = self._way(files[-1], file) if files and file.endswith(".py") and files[-1].endswith(".py") else [file]
            files += [one for one in way if one not in files]
        return files

    def naming(self, words: str) -> list[str]:
        """Return the files whose name or code has this expression, a folder of the thing's own in place of its files.
        Exit if none has."""
        named = [file for file, code in self._code.items() if re.search(words, f"{file}\n{code}")]
        if not named:
            sys.exit(f"No file names {words}: name the thing anew in NAMED.")
        return sorted({folder[0] if (folder := FOLDERS.match(file)) else file for file in named})

    def _file(self, stage: str) -> str:
        """Return the file of a stage. Exit if there is none, or several."""
        if stage in self._code:
            return stage
        part, _, name = stage.rpartition(":")
        files = [file for file in self._defining[name] if part in file]
        if len(files) != 1:
            sys.exit(f"{stage} is defined in {len(files)} files ({', '.join(files)}): name the stage anew in FIGURES.")
        return files[0]

    def _way(self, start: str, end: str) -> list[str]:
        """Return the shortest chain of imports, in either direction, through no module that most others import."""
        before: dict[str, str | None] = {start: None}
        waiting = deque([start])
        while waiting:
            file = waiting.popleft()
            if file == end:
                break
            if file != start and len(self._neighbours[file]) > COMMON:
                continue
            for other in sorted(self._neighbours[file] - before.keys()):
                before[other] = file
                waiting.append(other)
        else:
            sys.exit(f"No imports lead from {start} to {end}.")
        way: list[str] = []
        step: str | None = end
        while step:
            way.append(step)
            step = before[step]
        return way[::-1]


COMMON = 40
"""A module with so many neighbours (errors, format) is common ground, and no figure passes through it."""


class _Undocumented(ast.NodeTransformer):
    """Removes docstrings; comments are not in a tree."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder, name) for name in sorted(names) if name.endswith((".py", ".sql", ".html")))


def _module(file: str, package: str) -> str:
    return ".".join((package, *Path(file).with_suffix("").parts)).removesuffix(".__init__")


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that are imported, and for `from a import b` also a.b, which may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


if __name__ == "__main__":
    sys.exit(main())
