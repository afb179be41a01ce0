"""Causes made on loop devices, beside the causes that a comparison names: does it name what was made?

    python -m benchmarks.attribution FOLDER                    as root on Linux with cgroup v1's blkio; 20 minutes
    python -m benchmarks.attribution FOLDER --only hog tags    the cases whose names have one of these words
    python -m benchmarks.attribution FOLDER --judge            judge the records in FOLDER again, without a load

The bank on the embedded server lies on a loop device in variant A, and on its twin in all others. There a cause is
made while the users work: limits of the block controller, tags of the queue, a slow file system of FUSE, a session that
locks. A read of these devices takes 0.4 ms, so that other work of the machine hardly changes A. CPUs are made busy
beside folders of FOLDER's own disk: a loop device itself waits for a CPU. Prints a table in Markdown, and ends with 1
if a cause is named that is the opposite of the one made. FOLDER must be on a disk that direct I/O is possible on.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import psycopg

from stallmark.storage.emulator import ArrayModel, EmulatedArrays

NAME = "stallmark-attribution"
"""The name of the control groups, and part of the name of every image: what a killed benchmark left is known by it."""
REPEATS = 3
TICK_S = 0.1
IMAGE_BYTES = 3 << 30
BLKIO, CPU = (Path("/sys/fs/cgroup", name, NAME) for name in ("blkio", "cpu"))
DISK = ArrayModel(spindles=32, read_ms=0.4, write_ms=0.3, sync_ms=0.3, mb_per_s=500)
SLOW = ArrayModel(spindles=32, read_ms=1.6, write_ms=1.2, sync_ms=1.2, mb_per_s=500)
SLOWEST = ArrayModel(spindles=32, read_ms=8, write_ms=6, sync_ms=6, mb_per_s=500)
FOLDERS, QUICK = {"disk-a", "disk-b"}, {"quick-a", "quick-b"}
"""Places on FOLDER's own disk, and on loop devices as quick as it; all others are behind a file system of FUSE."""
PREPARED, RAN = ": preparing: done", ": running: done"
"""In the output of `stallmark run`: between these lines the users work."""
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Named(StrEnum):
    """Causes that a comparison may name."""

    ABOVE = "I/O above the device"
    STORAGE = "storage"
    CPU = "CPU"
    LOCKS = "locks"
    NUMBER = "the number of I/Os"
    OTHER = "something else"
    NOTHING = "no change"
    UNKNOWN = "not known"


class Mark(StrEnum):
    RIGHT = "right"
    NOT_TOLD = "cannot be told"
    WRONG = "wrong"
    OPPOSITE = "opposite"


IS_STORAGE = {Named.ABOVE, Named.STORAGE}


@dataclass(frozen=True)
class Case:
    """A cause. `limits` are of loop devices, or of the disk below them: {"b read_iops": 300}."""

    made: str
    right: tuple[set[Named], ...]  # every set of names that is right
    limits: dict[str, int] = field(default_factory=dict)
    hogs: int = 0
    tags: int | None = None
    cpu_share: float | None = None  # of one CPU, which the server's processes may use
    table_lock: bool = False
    model: ArrayModel = DISK  # of the devices behind FUSE
    place: str | None = None
    variant: dict[str, Any] = field(default_factory=dict)

    @property
    def storage(self) -> bool:
        return any(names & IS_STORAGE for names in self.right)


THROTTLED = ({Named.ABOVE},)
IN_DEVICE = ({Named.STORAGE},)
PROCESSOR = ({Named.CPU},)
SAME = ({Named.NOTHING},)
FEWER = ({Named.NUMBER}, {Named.NUMBER, Named.STORAGE})
"""Of fewer I/Os fewer queue at the device, so each takes less."""
BOTH = ({Named.ABOVE, Named.CPU},)


def emulated(read_ms: float) -> dict[str, Any]:
    """Return the part of a variant that puts its data on an emulated array."""
    array = {"spindles": 8, "read_ms": read_ms, "write_ms": read_ms / 2, "sync_ms": 0, "mb_per_s": 200}
    return {"emulated_array": {"data": array}}


@dataclass(frozen=True)
class Experiment:
    """Cases that are held against one A. The places of A and of the others, unless a case has another."""

    cases: dict[str, Case]
    a: str = "a"
    b: str = "b"
    logs: tuple[str, str] | None = None
    users: int = 4
    variant: dict[str, Any] = field(default_factory=dict)  # of A
    hooks: bool = True  # an emulated array has none

    def place(self, case: Case | None) -> str:
        """Return the place of a case's data; of A without one."""
        return case.place or self.b if case else self.a


LOOPS = {
    "nothing": Case("nothing (A/A)", SAME),
    "reads-mild": Case("reads limited to 400/s", THROTTLED, {"b read_iops": 400}),
    "reads-hard": Case("reads limited to 120/s", THROTTLED, {"b read_iops": 120}),
    "read-bytes": Case("reads limited to 1.5 MB/s", THROTTLED, {"b read_bps": 1_500_000}),
    "writes": Case("writes limited to 100/s", THROTTLED, {"b write_iops": 100}),
    "write-bytes": Case("writes limited to 1 MB/s", THROTTLED, {"b write_bps": 1_000_000}),
    "reads-writes": Case(
        "reads and writes limited to 200/s each", THROTTLED, {"b read_iops": 200, "b write_iops": 200}
    ),
    "slow": Case("a device four times as slow", IN_DEVICE, model=SLOW),
    "fuse": Case("a file system of FUSE, 20 times as slow", THROTTLED + IN_DEVICE, model=SLOWEST, place="fuse"),
    "cpu-quota": Case("the server limited to 0.04 of a CPU", PROCESSOR, cpu_share=0.04),
    "locks": Case("another session locks a table", ({Named.LOCKS},), table_lock=True),
    "pool": Case("a buffer pool of 150 MiB for one of 8", FEWER, variant={"buffer_pool": "150MiB"}),
}
LOG_APART = {
    "log-mild": Case("writes of the log limited to 150/s", THROTTLED, {"log-b write_iops": 150}),
    "log-hard": Case("writes of the log limited to 40/s", THROTTLED, {"log-b write_iops": 40}),
    "data-reads": Case("reads of data limited to 250/s, the log apart", THROTTLED, {"b read_iops": 250}),
}
QUICK_LOOPS = {
    "quick-reads": Case("reads of a quick device limited to 1,500/s", THROTTLED, {"quick-b read_iops": 1500}),
    "below": Case("the disk below the loop device limited to 400 reads/s", IN_DEVICE, {"disk read_iops": 400}),
}
QUEUE = {"tags": Case("a slow device with nr_requests = 4", (*THROTTLED, {Named.ABOVE, Named.STORAGE}), tags=4)}
BESIDE = {
    "nothing-disk": Case("nothing (A/A)", SAME),
    "hog-2": Case("2 busy processes beside", PROCESSOR, hogs=2),
    "hog-8": Case("8 busy processes beside", PROCESSOR, hogs=8),
    "hog-reads": Case("2 busy processes, reads limited to 800/s", THROTTLED + BOTH, {"disk read_iops": 800}, hogs=2),
    "hog-8-reads": Case(
        "8 busy processes, reads limited to 2,000/s", THROTTLED + BOTH, {"disk read_iops": 2000}, hogs=8
    ),
}
EMULATED = {"emulated": Case("an emulated array of 4 ms for one of 1 ms", IN_DEVICE, variant=emulated(4))}
EXPERIMENTS = {
    "loops": Experiment(LOOPS),
    "log-apart": Experiment(LOG_APART, logs=("log-a", "log-b")),
    "quick-loops": Experiment(QUICK_LOOPS, "quick-a", "quick-b"),
    "queue": Experiment(QUEUE, "quick-a", users=16),
    "beside": Experiment(BESIDE, "disk-a", "disk-b"),
    "emulated": Experiment(EMULATED, "disk-a", "disk-b", variant=emulated(1), hooks=False),
}


def call(*command: str | Path, check: bool = True) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def clean() -> None:
    """Remove the loop devices, mounts and control groups of this benchmark, also of one that was killed."""
    listed = call("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
    ours = [line.split() for line in listed.splitlines()]
    loops = [name for name, *back in ours if NAME in " ".join(back)]
    mounts = [line.split()[:2] for line in Path("/proc/mounts").read_text().splitlines()]
    for _, place in sorted((m for m in mounts if m[0] in loops or NAME in m[1]), key=lambda m: m[1], reverse=True):
        call("umount", "--lazy", place, check=False)
    for loop in loops:
        call("losetup", "--detach", loop, check=False)
    for group in (BLKIO, CPU):
        if group.is_dir():
            for process in (group / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (group.parent / "cgroup.procs").write_text(process)
            with suppress(OSError):
                group.rmdir()


class Places:
    """The file systems: `a` and `b`, their logs, a slow loop device and a slow file system of FUSE."""

    def __init__(self, folder: Path):
        self.folder = folder / NAME
        self.now = self.folder / "now"  # the variant that runs
        self.loops: dict[str, str] = {}
        self.slow: EmulatedArrays | None = None
        self._bindfs: subprocess.Popen | None = None

    def make(self, wanted: set[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        if wanted - FOLDERS - QUICK:
            self._mount_slow()
        for name in wanted - {"fuse"}:
            (self.folder / name).mkdir()
            if name not in FOLDERS:
                self._mount_loop(name)
            (self.folder / name).chmod(0o777)

    def _mount_loop(self, name: str) -> None:
        image = self.folder / ("" if name in QUICK else "slow-files") / f"{name}.img"
        call("truncate", f"--size={IMAGE_BYTES}", image)
        call("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        below = image if name in QUICK else self.folder / "slow-mount" / image.name
        self.loops[name] = call("losetup", "--find", "--show", "--direct-io=on", below)
        call("mount", self.loops[name], self.folder / name)

    def _mount_slow(self) -> None:
        """Mount a file system of FUSE whose I/O takes as long as a model says, once it has one."""
        files, mount = self.folder / "slow-files", self.folder / "slow-mount"
        for each in (files, mount, files / "fuse"):
            each.mkdir(exist_ok=True)
            each.chmod(0o777)
        state = Path(f"/dev/shm/{NAME}")
        self.slow = EmulatedArrays.create(state, {"slow": files}, {"slow": None}, build_dir=self.folder)
        options = ["-f", "--multithreaded", "--forward-odirect=4096"]
        self._bindfs = subprocess.Popen(
            [*DIES_WITH_US, "bindfs", *options, files, mount], env=os.environ | self.slow.environment()
        )
        while not mount.is_mount():
            if self._bindfs.poll() is not None:
                sys.exit("bindfs did not mount its file system.")
            time.sleep(0.05)

    def data(self, name: str) -> Path:
        return self.folder / ("slow-mount/fuse/db" if name == "fuse" else f"{name}/db")

    def device(self, name: str) -> str:
        """Return the numbers of a loop device, or of the whole disk below, as the block controller wants them."""
        if name in self.loops:
            number = os.stat(self.loops[name]).st_rdev
            return f"{os.major(number)}:{os.minor(number)}"
        number = os.stat(self.folder).st_dev
        block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
        return ((block.parent if (block / "partition").exists() else block) / "dev").read_text().strip()

    def queue(self, name: str) -> Path:
        return Path("/sys/block", Path(self.loops[name]).name, "queue")

    def close(self) -> None:
        clean()
        if self._bindfs:
            self._bindfs.kill()
            self._bindfs.wait()
        if self.slow:
            self.slow.close()


class Conditions(threading.Thread):
    """Makes the cause of the case that runs. Limits of storage are there from when the server starts; what is beside
    it, from when its users work. All of it ends with the users, so that no check of the data waits for it."""

    def __init__(self, places: Places, experiment: Experiment, log: Path):
        super().__init__(daemon=True)
        self._log = log
        self._experiment = experiment
        self.places = places
        places.now.write_text("")
        self._ended = threading.Event()
        self._undo: list[Callable[[], object]] = []
        self._name, self._server, self._over, self._disturbed = "", "", 0, False
        self._moved: set[str] = set()

    def run(self) -> None:
        try:
            while not self._ended.wait(TICK_S):
                self._look()
        finally:
            self._lift()

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _look(self) -> None:
        name, output = self.places.now.read_text().strip(), self._log.read_text() if self._log.exists() else ""
        if name != self._name:
            self._lift()
            self._name, self._server, self._over = name, "", output.count(RAN)
        if not name or output.count(RAN) > self._over:
            self._lift()
            return
        case = self._experiment.cases.get(name)
        data = self.places.data(self._experiment.place(case))
        server = _postmaster(data)
        if server and server != self._server:
            self._lift()
            self._server, self._disturbed, self._moved = server, False, set()
            self._limit(case)
        if server:
            self._move(server)
        if server and case and not self._disturbed and output.count(PREPARED) > output.count(RAN):
            self._disturbed = True
            self._disturb(case, data)

    def _move(self, server: str) -> None:
        """Move the server's processes into the control groups; later ones begin there."""
        children: list[str] = []
        with suppress(OSError):
            children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for process in {server, *children} - self._moved:
            with suppress(OSError):
                for group in (BLKIO, CPU):
                    (group / "cgroup.procs").write_text(process)
                self._moved.add(process)

    def _limit(self, case: Case | None) -> None:
        if self.places.slow:
            self.places.slow.set_model("slow", case.model if case else DISK)
            self._undo.append(lambda slow=self.places.slow: slow.set_model("slow", None))
        if case is None:
            return
        for limit, value in case.limits.items():
            name, _, operation = limit.partition(" ")
            device, file = self.places.device(name), BLKIO / f"blkio.throttle.{operation}_device"
            file.write_text(f"{device} {value}")
            self._undo.append(lambda file=file, device=device: file.write_text(f"{device} 0"))
        if case.tags:
            tags = self.places.queue(self._experiment.place(case)) / "nr_requests"
            before = tags.read_text()
            tags.write_text(str(case.tags))
            self._undo.append(lambda: tags.write_text(before))

    def _disturb(self, case: Case, data: Path) -> None:
        for _ in range(case.hogs):
            hog = subprocess.Popen([*DIES_WITH_US, sys.executable, "-c", "while True: pass"])
            self._undo.append(lambda hog=hog: (hog.kill(), hog.wait()))
        if case.cpu_share:
            quota = CPU / "cpu.cfs_quota_us"
            (CPU / "cpu.cfs_period_us").write_text("100000")
            quota.write_text(str(round(case.cpu_share * 100_000)))
            self._undo.append(lambda: quota.write_text("-1"))
        if case.table_lock:
            locker = subprocess.Popen([*DIES_WITH_US, sys.executable, "-m", "benchmarks.attribution", "lock", data])
            self._undo.append(lambda: (locker.kill(), locker.wait()))

    def _lift(self) -> None:
        while self._undo:
            with suppress(OSError):
                self._undo.pop()()


def _postmaster(data: Path) -> str:
    """Return the process of a server that is ready; empty if there is none."""
    with suppress(OSError):
        lines = [line.strip() for line in (data / "data" / "postmaster.pid").read_text().splitlines()]
        if lines[7:8] == ["ready"]:
            return lines[0]
    return ""


def lock_history(data: Path) -> None:
    """Lock the history for 40 ms in every 50. Nothing is changed."""
    lines = (data / "data" / "postmaster.pid").read_text().splitlines()
    server = f"host={lines[4].strip()} port={lines[3].strip()} user=stallmark"
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as asked:
        listed = asked.execute("SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY datname = 'postgres'")
        [database, *_] = [name for (name,) in listed]
    with psycopg.connect(f"{server} dbname={database}", autocommit=True) as session:
        while True:
            with session.transaction():
                session.execute("LOCK TABLE bank.history IN ACCESS EXCLUSIVE MODE")
                time.sleep(0.04)
            time.sleep(0.01)


def scenario(name: str, experiment: Experiment, places: Places) -> dict[str, Any]:
    def variant(key: str, case: Case | None) -> dict[str, Any]:
        place = {"data": str(places.data(experiment.place(case)))}
        if experiment.logs:
            place["log"] = str(places.data(experiment.logs[case is not None]))
        before = {"command": ["/bin/sh", "-c", f"echo {key} > {places.now}"]}
        hook = {"before": before} if experiment.hooks else {}
        return {"name": key, "place": place, **hook, **(case or experiment).variant}

    return {
        **{"name": name, "title": name, "answers": "-", "needs": "-"},
        "workload": {"name": "bank", "scale": {"branches": 20}},
        **{"users": experiment.users, "warm_up": "1s", "measure": "5s"},
        **{"buffer_pool": "8MiB", "reset": "restore", "repeats": REPEATS},
        "variants": [variant("A", None), *(variant(key, case) for key, case in experiment.cases.items())],
    }


def run(folder: Path, name: str, experiment: Experiment, places: Places) -> None:
    file, log = folder / f"{name}.yaml", folder / f"{name}.log"
    log.unlink(missing_ok=True)
    file.write_text(json.dumps(scenario(name, experiment, places)))
    shutil.rmtree(folder / "runs" / name, ignore_errors=True)
    stallmark = [sys.executable, "-m", "stallmark.cli.main", "run", str(file)]
    options = ["--data-dir", str(folder / "home"), "--out", str(folder / "runs" / name)]
    conditions = Conditions(places, experiment, log)
    conditions.start()
    try:
        with log.open("w") as output:
            done = subprocess.run([*DIES_WITH_US, *stallmark, *options], stdout=output, stderr=subprocess.STDOUT)
    finally:
        conditions.end()
    print(f"{name}: ended with {done.returncode}; its output is {log}", file=sys.stderr, flush=True)


def read_summary(command: str, folder: Path) -> dict[str, Any]:
    """Return the JSON of a command on the runs in a folder."""
    runs = [str(each) for each in sorted(folder.iterdir())]
    arguments = ["--baseline", "A"] if command == "compare" else []
    done = subprocess.run(
        [sys.executable, "-m", "stallmark.cli.main", command, *runs, *arguments, "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    if not done.stdout:
        sys.exit(f"stallmark {command} failed: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def named_causes(pair: dict[str, Any]) -> set[Named]:
    """Return what a comparison names as the cause, by the kinds of its findings."""
    cause = pair["cause"]
    if not cause or (cause["storage"] == "not_known" and not cause["finding"]["kind"].startswith("response_time")):
        return {Named.UNKNOWN}
    finding, names = cause["finding"], set()
    facts = finding["facts"]
    if finding["kind"].startswith("response_time"):
        return {Named.NOTHING}
    if cause["storage"] != "is_not_the_cause":
        names.add(Named.ABOVE if "above" in json.dumps([finding["kind"], facts.get("io_reason")]) else Named.STORAGE)
    names |= {_reason_name(other) for other in facts.get("others", [])}
    return names or {Named.UNKNOWN}


def _reason_name(finding: dict[str, Any]) -> Named:
    kind, part = finding["kind"], finding["facts"].get("part")
    if "above" in kind or "above" in str(part):
        return Named.ABOVE
    if kind == "number_changed" or kind == "number_waited_for_changed":
        return Named.NUMBER
    if kind == "cpu_time_changed" or part == "cpu":
        return Named.CPU
    if part in ("read", "log", "other_io"):
        return Named.STORAGE
    return Named.LOCKS if part == "lock" else Named.OTHER


def judge_case(case: Case, names: set[Named], verdicts: Sequence[str]) -> Mark:
    """Judge what was named. Storage without its place is right of what was made above the device only if no step says
    that its device limits it."""
    if names in case.right:
        return Mark.RIGHT
    if names == {Named.UNKNOWN}:
        return Mark.NOT_TOLD
    if {Named.NOTHING} in (names, *case.right):
        return Mark.WRONG
    if case.storage != bool(names & IS_STORAGE):
        return Mark.OPPOSITE
    placed = any(kind in ("device_limits", "device_latency_limits") for kind in verdicts)
    if case.storage and names == {Named.STORAGE} and case.right == THROTTLED and not placed:
        return Mark.NOT_TOLD
    return Mark.WRONG


def rows(folder: Path, name: str, experiment: Experiment) -> Iterator[tuple[str, str, str, str, str, Mark]]:
    """Yield the rows of the table: case, cause made, throughput, cause named, verdicts on the device, mark."""
    compared, reported = (read_summary(command, folder / "runs" / name) for command in ("compare", "report"))
    steps = [step for run in reported["runs"] for step in run["steps"]]
    baseline = Counter(_verdict(step) for step in steps if step["variant"] == "A")
    yield f"{name}: A", "the baseline", "", "", _listed(baseline), Mark.RIGHT
    for pair in compared["pairs"]:
        case = experiment.cases.get(pair["b"])
        if not case:
            continue
        verdicts = Counter(_verdict(step) for step in steps if step["variant"] == pair["b"])
        names = named_causes(pair)
        ratio = pair["primary"]["ratio"]
        finding = pair["cause"]["finding"] if pair["cause"] else pair["finding"]
        words = f"**{', '.join(sorted(names))}**: {finding['sentence']}"
        yield (
            pair["b"], case.made, f"{ratio:.2f} ×" if ratio else "–", words, _listed(verdicts),
            judge_case(case, names, list(verdicts)),
        )  # fmt: skip


def _verdict(step: dict[str, Any]) -> str:
    return step["device_verdict"]["kind"] if step["device_verdict"] else "not judged"


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counted.most_common())


def judge(folder: Path, wanted: dict[str, Experiment]) -> bool:
    """Print the table; return whether no cause is named that is the opposite of the one made."""
    print("| case | cause made | TPS of A | cause named | device verdicts of the steps | |")
    print("|---|---|---|---|---|---|")
    marks: Counter[Mark] = Counter()
    for name, experiment in wanted.items():
        if not (folder / "runs" / name).is_dir():
            continue
        for row in rows(folder, name, experiment):
            baseline = row[1] == "the baseline"
            marks.update([] if baseline else [row[-1]])
            print(f"| {' | '.join(row[:-1])} | {'' if baseline else row[-1]} |")
    print(f"\n{marks[Mark.RIGHT]} of {marks.total()} right: " + ", ".join(f"{marks[mark]} {mark}" for mark in Mark))
    return not marks[Mark.OPPOSITE]


@contextmanager
def prepared(folder: Path, wanted: dict[str, Experiment]) -> Iterator[Places]:
    """Make file systems and control groups, and remove them at the end."""
    clean()
    atexit.register(clean)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("stopped"))
    shutil.rmtree(folder / NAME, ignore_errors=True)
    places = Places(folder)
    needed: set[str] = set()
    for each in wanted.values():
        needed |= {each.a, *(each.logs or ()), *map(each.place, each.cases.values())}
    try:
        for group in (BLKIO, CPU):
            group.mkdir()
        places.make(needed)
        yield places
    finally:
        places.close()
        shutil.rmtree(folder / NAME, ignore_errors=True)


def select_experiments(words: Sequence[str]) -> dict[str, Experiment]:
    """Return the experiments with the cases that are wanted."""
    wanted = {}
    for name, experiment in EXPERIMENTS.items():
        cases = experiment.cases.items()
        if cases := {key: case for key, case in cases if not words or any(word in key for word in words)}:
            wanted[name] = replace(experiment, cases=cases)
    return wanted


def main() -> None:
    if sys.argv[1:2] == ["lock"]:  # a session beside, of which a case is made
        lock_history(Path(sys.argv[2]))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--judge", action="store_true", help="judge the records that are there")
    given = parser.parse_args()
    folder = given.folder.resolve()
    wanted = select_experiments(given.only)
    if not given.judge:
        if os.geteuid() or not BLKIO.parent.is_dir():
            sys.exit("This makes loop devices and control groups: run it as root, on Linux with cgroup v1's blkio.")
        if not shutil.which("bindfs"):
            sys.exit("Slow devices are made with bindfs, which is missing (Debian and Ubuntu: apt install bindfs).")
        folder.mkdir(parents=True, exist_ok=True)
        with prepared(folder, wanted) as places:
            for name, experiment in wanted.items():
                run(folder, name, experiment, places)
    sys.exit(0 if judge(folder, wanted) else 1)


if __name__ == "__main__":
    main()
