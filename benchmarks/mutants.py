"""The kill matrix: one small fault at a time is put into the code, and the tests of its room are to find it.

    python -m benchmarks.mutants --count 300                       about so many, of all rooms
    python -m benchmarks.mutants --rooms stats record --count 50   of these
    python -m benchmarks.mutants --compare OLD.jsonl --results NEW.jsonl   those that were killed, in the tree of today

A mutant is drawn by the seed and its text, so the same code gives the same mutants. The tests of its room that start no
server run with -x in a copy of the tree, first those that name its module. Results go to a file outside the repository,
a line of JSON each, and the same command goes on where it was stopped. `--compare` finds a mutant by its statement, not
by its line: in code that was moved it is the same. It ends with 1 if one survives that was killed, and lists it.
"""

import argparse
import ast
import compileall
import copy
import hashlib
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/stallmark")
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
            ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}  # fmt: skip
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "is": "is not", "is not": "is",
           "in": "not in", "not in": "in"}  # fmt: skip
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPUTED = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
            ast.BitAnd: "&"}  # fmt: skip
OTHER = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "*", "**": "*", "&": "|", "and": "or", "or": "and"}
PARTS_OF_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
NOT_RUN = {"annotation", "returns", "decorator_list", "bases", "type_params"}
ROOM_S, TIMES = 60.0, 5
"""A mutant may take so much longer than its room's tests without it, and so many times as long."""


@dataclass(frozen=True)
class Mutant:
    """A change of a part of a file, from byte `begin` to `end`. `place`: of those alike in its statement."""

    file: str
    line: int
    kind: str
    function: str
    statement: str
    before: str
    after: str
    place: int
    begin: int
    end: int
    text: str

    @property
    def room(self) -> str:
        return Path(self.file).parts[0].removesuffix(".py")

    @property
    def code(self) -> tuple[str | int, ...]:
        """Its identity wherever the statement stands."""
        return self.kind, self.statement, self.before, self.after, self.place


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", help="folders and modules of src/stallmark; all by default")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compare", type=Path, metavar="OLD", help="run again what was killed in these results")
    results = Path(tempfile.gettempdir()) / "stallmark-mutants.jsonl"
    parser.add_argument("--results", type=Path, default=results, help="where the results go [default: %(default)s]")
    asked = parser.parse_args()
    os.nice(15)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped: the same command goes on."))  # and no test goes on
    everything = [one for one in mutants(ROOT) if asked.rooms is None or one.room in asked.rooms]
    if asked.compare:
        killed = [one for one in read(asked.compare) if one["result"] == "killed"]
        chosen = again(everything, killed)
        print(f"{len(killed)} were killed; the code of {len(chosen)} is there, that of the others was changed.")
    else:
        chosen = [(one, None) for one in drawn(everything, asked.count, asked.seed)]
    with tempfile.TemporaryDirectory() as scratch:
        survived = Matrix(Path(scratch), asked.results).run(chosen)
    return 1 if asked.compare and survived else 0


def mutants(root: Path) -> list[Mutant]:
    """Return all mutants of the package, of code that stands twice the first."""
    found: dict[tuple[Any, ...], Mutant] = {}
    for folder, folders, files in os.walk(root / PACKAGE, followlinks=True):
        folders.sort()
        for file in (Path(folder, name) for name in sorted(files) if name.endswith(".py")):
            for one in mutants_in(file.read_bytes(), file.relative_to(root / PACKAGE).as_posix()):
                found.setdefault((one.function, *one.code), one)
    return list(found.values())


def mutants_in(source: bytes, file: str = "") -> list[Mutant]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return list(_Finder(source, file, starts).within(ast.parse(source)))


class _Finder:
    def __init__(self, source: bytes, file: str, starts: Sequence[int]):
        self._source, self._file, self._starts = source, file, starts
        self._function = self._statement = ""
        self._alike: Counter[tuple[str, ...]] = Counter()

    def within(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of a node and of all in it that is run."""
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):  # before 3.12 places in f-strings are wrong
            return
        before = self._function, self._statement, self._alike
        if isinstance(node, ast.stmt):
            self._statement, self._alike = _without_body(node), Counter()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._function = node.name
        for kind, begin, end, text in self._changes(node):
            yield self._mutant(node, kind, begin, end, text)
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for name, value in ast.iter_fields(node):
            if name in NOT_RUN or (typing and name != "orelse"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.within(child)
        self._function, self._statement, self._alike = before

    def _mutant(self, node: ast.AST, kind: str, begin: int, end: int, text: str) -> Mutant:
        words = _words(self._source[begin:end].decode()), _words(text)
        place = self._alike[kind, *words]
        self._alike[kind, *words] += 1
        line = getattr(node, "lineno", 1)
        return Mutant(self._file, line, kind, self._function, self._statement, *words, place, begin, end, text)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                sign = COMPARED[type(operator)]
                yield from self._between(left, right, sign, NEGATED[sign], "comparison")
                if sign in BOUNDARY:
                    yield from self._between(left, right, sign, BOUNDARY[sign], "boundary")
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            sign = COMPUTED[type(node.op)]
            yield from self._between(node.left, node.right, sign, OTHER[sign], "operator")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):  # of dicts and sets
            yield from self._swapped(node.left, node.right, "operands")
        elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
            sign = COMPUTED[type(node.op)]
            yield from self._between(node.target, node.value, f"{sign}=", f"{OTHER[sign]}=", "operator")
        elif isinstance(node, ast.BoolOp):
            sign = "and" if isinstance(node.op, ast.And) else "or"
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(left, right, sign, OTHER[sign], "and or")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            begin, end = self._span(node)
            yield "not", begin, end, self._source[begin + 3 : end].decode().strip()
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "constant", *self._span(node), str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            more = node.value + 1 if isinstance(node.value, int) or not node.value else node.value * 2
            yield "constant", *self._span(node), repr(more)
        elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
            yield "return", *self._span(node.value), "None"
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            yield from self._swapped(*node.args[:2], "arguments")
        tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", None)]
        for test in tests:
            if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr):
                begin, end = self._span(test)
                yield "condition", begin, end, f"not ({self._source[begin:end].decode()})"

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first, last = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def _between(self, left: ast.expr, right: ast.expr, sign: str, other: str, kind: str) -> Iterator[tuple]:
        """Yield a change of the sign between two operands."""
        begin, end = self._span(left)[1], self._span(right)[0]
        at = self._source[begin:end].find(sign.encode())
        if at >= 0:
            yield kind, begin + at, begin + at + len(sign), other

    def _swapped(self, left: ast.expr, right: ast.expr, kind: str) -> Iterator[tuple]:
        if isinstance(left, ast.Starred) or isinstance(right, ast.Starred) or ast.dump(left) == ast.dump(right):
            return
        (begin, middle), (next, end) = self._span(left), self._span(right)
        first, between, second = (self._source[a:b].decode() for a, b in ((begin, middle), (middle, next), (next, end)))
        yield kind, begin, end, f"{second}{between}{first}"


def _without_body(statement: ast.stmt) -> str:
    bare = copy.copy(statement)
    for name in PARTS_OF_STATEMENTS:
        if hasattr(bare, name):
            setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return ast.unparse(bare)


def _words(text: str) -> str:
    return " ".join(text.split())


def drawn(everything: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return about `count` mutants, of each room by its share and at least one: those with the lowest hashes."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for one in everything:
        rooms[one.room].append(one)

    def rank(one: Mutant) -> bytes:
        return hashlib.sha256(repr((seed, one.function, *one.code)).encode()).digest()

    return [
        one
        for of_room in rooms.values()
        for one in sorted(of_room, key=rank)[: max(1, round(count * len(of_room) / len(everything)))]
    ]


def again(everything: Sequence[Mutant], killed: Sequence[dict[str, Any]]) -> list[tuple[Mutant, str | None]]:
    """Return the mutants of today of code that was killed, each with the test that did it. Of code that stands several
    times that in the same function or file is taken."""
    by_code: dict[tuple[str | int, ...], list[Mutant]] = defaultdict(list)
    for one in everything:
        by_code[one.code].append(one)
    found = []
    for old in killed:
        alike = by_code.get(tuple(old[name] for name in ("kind", "statement", "before", "after", "place")), ())
        if alike:
            name = Path(old["file"]).name
            near = max(alike, key=lambda one: (one.function == old["function"]) * 2 + (Path(one.file).name == name))
            found.append((near, old["test"]))
    return found


def read(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


class Matrix:
    """Runs of tests in a copy of the tree, and their results."""

    def __init__(self, scratch: Path, results: Path):
        self._tree, self._scratch, self._results = scratch / "tree", scratch, results
        self._rooms_s: dict[str, float] = {}
        if results.resolve().is_relative_to(ROOT):
            sys.exit(f"{results} is in the repository: name a file outside of it.")
        self._commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
        if others := {one["commit"] for one in read(results)} - {self._commit}:
            sys.exit(f"{results} is of commit {min(others)}, and this is {self._commit}: name another file of results.")

    def run(self, chosen: Sequence[tuple[Mutant, str | None]]) -> list[dict[str, Any]]:
        """Run the mutants that have no result yet; print and return those that survived."""
        done = {(one["function"], one["kind"], one["statement"], one["before"], one["after"], one["place"]): one
                for one in read(self._results)}  # fmt: skip
        copy_tree(self._tree)
        found = []
        for number, (mutant, test) in enumerate(chosen, 1):
            one = done.get((mutant.function, *mutant.code))
            if one is None and tests_of(self._tree, mutant.room):
                one = self._result(mutant, test)
                with self._results.open("a") as file:
                    file.write(f"{json.dumps(one)}\n")
            if one:
                found.append(one)
                by = f" by {one['test']}" if one["test"] else ""
                print(f"{number}/{len(chosen)} {mutant.file}:{mutant.line} {mutant.before} → {mutant.after}: "
                      f"{one['result']}{by}, {one['seconds']} s"[:200], flush=True)  # fmt: skip
        _print_rooms(found)
        return [one for one in found if one["result"] == "survived"]

    def _result(self, mutant: Mutant, test: str | None) -> dict[str, Any]:
        file = self._tree / PACKAGE / mutant.file
        source = file.read_bytes()
        within_s = ROOM_S + TIMES * self._room_s(mutant.room)
        began = time.monotonic()
        result, by = "survived", None
        try:
            file.write_bytes(source[: mutant.begin] + mutant.text.encode() + source[mutant.end :])
            for files in self._in_order(mutant, test):
                result, by = self._tested(files, within_s)
                if result != "survived":
                    break
        finally:
            file.write_bytes(source)
        about = {"commit": self._commit, "room": mutant.room, "result": result, "test": by}
        about |= {"seconds": round(time.monotonic() - began, 1)}
        return {name: value for name, value in asdict(mutant).items() if name not in ("begin", "end", "text")} | about

    def _room_s(self, room: str) -> float:
        """Return how long the tests of a room take as it is. End if they fail, as then every mutant would be killed."""
        if room not in self._rooms_s:
            began = time.monotonic()
            result, by = self._tested(tests_of(self._tree, room), 1800)
            if result != "survived":
                sys.exit(f"The tests of {room} fail without a mutant ({by or result}): mend them first.")
            self._rooms_s[room] = time.monotonic() - began
        return self._rooms_s[room]

    def _in_order(self, mutant: Mutant, test: str | None) -> Iterator[list[Path]]:
        """Yield the files of tests in turns: that which killed it before, those that name its module, the others."""
        module = ".".join(("stallmark", *Path(mutant.file).with_suffix("").parts)).removesuffix(".__init__")
        package, _, name = module.rpartition(".")
        named = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b")
        rest = [
            file
            for one in tests_of(self._tree, mutant.room)
            for file in (sorted(one.rglob("test_*.py")) if one.is_dir() else [one])
        ]
        before = [file for file in rest if test and file == self._tree / test.partition("::")[0]]
        near = [file for file in rest if file not in before and named.search(file.read_text())]
        others = [file for file in rest if file not in before and file not in near]
        yield from filter(None, (before, near, others))

    def _tested(self, files: Sequence[Path], within_s: float) -> tuple[str, str | None]:
        """Run tests, and return the result with the name of the test that failed."""
        options = ["-x", "--tb=no", "-rfE", "--no-header", "-p", "no:cacheprovider", "-m", "not server"]
        command = [sys.executable, "-m", "pytest", *options, f"--basetemp={self._scratch / 'tests'}", *map(str, files)]
        paths = os.pathsep.join(str(self._tree / name) for name in ("src", ""))
        home = self._scratch / "home"
        environment = os.environ | {"PYTHONPATH": paths, "HOME": str(home), "STALLMARK_STATE": str(home / "state")}
        process = subprocess.Popen(
            command, cwd=self._tree, env=environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return "timeout", None
        finally:
            _end(process)
        if process.returncode in (0, 5):  # 5: there was none to run
            return "survived", None
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        return "killed", failed[1] if failed else said[-200:]


def _end(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def copy_tree(target: Path) -> None:
    """Copy what git knows and what is new. Python looks at the contents of a file to tell whether it was changed: two
    mutants may have the same size and second."""
    names = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, names.split("\0")):
        if (source := ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    compileall.compile_dir(target, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def tests_of(tree: Path, room: str) -> list[Path]:
    """Return the folder or the file of a room's tests; nothing if it has none of its own."""
    return [one for one in (tree / "tests" / room, tree / "tests" / f"test_{room}.py") if one.exists()]


def _print_rooms(found: Sequence[dict[str, Any]]) -> None:
    rooms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in found:
        rooms[one["room"]].append(one)
    print(f"\n{'room':<16}{'mutants':>8}{'killed':>8}{'timeout':>8}{'survived':>9}{'s each':>8}")
    for room, of_room in [*sorted(rooms.items()), ("all", list(found))]:
        results = Counter(one["result"] for one in of_room)
        each_s = sum(one["seconds"] for one in of_room) / max(1, len(of_room))
        counts = [len(of_room), results["killed"], results["timeout"], results["survived"]]
        print(f"{room:<16}{counts[0]:>8}{counts[1]:>8}{counts[2]:>8}{counts[3]:>9}{each_s:>8.1f}")
    for one in found:
        if one["result"] == "survived":
            print(f"survived: {one['file']}:{one['line']} in {one['function']}: {one['before']} → {one['after']}"[:200])


if __name__ == "__main__":
    sys.exit(main())
