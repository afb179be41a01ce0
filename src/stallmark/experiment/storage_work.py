"""The work on the storage itself around runs: hooks that reconfigure it, preconditioning, probes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from stallmark import engines
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment.manifest import PreparedStorage
from stallmark.experiment.progress import Phase, Show
from stallmark.processes import exit_clause
from stallmark.record.manifest.storage import Array, Asked, HookResult, Precondition, ProbeResult
from stallmark.redact import environment, without_secrets
from stallmark.scenarios.model import AnyScenario, Hook, Variant
from stallmark.scenarios.storage import PreconditionChoice, ProbeChoice
from stallmark.stats.steady_state import steady_rounds
from stallmark.stopping import later
from stallmark.storage.block_devices import NoBlockDevice, device_behind, emulated_array_of
from stallmark.storage.emulator.arrays import PROBE_FOLDER
from stallmark.storage.fio import PATTERNS
from stallmark.storage.probe import in_steps, measure
from stallmark.storage.probe_file import LEAST_BYTES, make_probe_file, refuse_little_space
from stallmark.storage.programs import can_probe

# Hooks: a command, or a question to the operator, that changes the array before a variant.
#
# before: {command: [ssh, array, set-cache, --size, 800GB], timeout: 10min}
# before: {ask: "Put the SSDs into the read cache, then press Enter."}
#
# Or a command at the end of an experiment, however it ended:
#
# at_end: {command: [mail, -s, "Stallmark: {state}", me@example.org]}
#
# A command is run without a shell, its output is kept, and one that fails ends the experiment before anything is
# measured on an array that is not what the variant says.

MOST_OUTPUT = 4000
"""Number of characters kept of a command's output: its end, which has the error message."""

DEFAULT_TIMEOUT_S = 600.0
"""Longer than an array takes to answer, shorter than an operator who has gone home would like to find out."""

GRACE_S = 5.0
"""To end by itself after it was asked to (SIGTERM): it may have a session with the array to close."""

YES, NO = ("", "y", "yes", "ok", "done"), ("n", "no", "stop", "quit", "q")


class HookFailed(StallmarkError):
    """The array is not what the variant needs."""


def refuse_impossible_hook(key: str, hook: Hook) -> None:
    """Raise HookFailed for a hook that cannot be carried out, before anything is loaded."""
    if hook.ask and not (sys.stdin and sys.stdin.isatty()):
        raise HookFailed(
            f"{key} asks the operator (ask), but there is no terminal here: run it in a terminal, or "
            "write a command ({command: […]})."
        )
    if hook.command and not _program(hook.command[0], environment()):
        raise HookFailed(f"{key}: the command {hook.command[0]!r} is not there to be run.")


def carry_out_hook(title: str, hook: Hook, show: Show, which: str | None = None) -> HookResult:
    """Carry out a hook before the variant `title`; return its result for the record. Raise HookFailed.

    `which` names the command in sentences, if it is not that of a variant.
    """
    began = time.monotonic()
    if hook.ask:
        answer = _ask(title, hook.ask, show)
        return HookResult(ask=hook.ask, answer=answer, seconds=round(seconds_since(began), 1))
    assert hook.command
    with show.bar(f"{title}: {' '.join(hook.command)}", None):
        show.waits(" ".join(hook.command))
        output = _run(which or f"The command before {title!r}", hook.command, hook.timeout or DEFAULT_TIMEOUT_S)
    return HookResult(command=tuple(hook.command), output=output, seconds=round(seconds_since(began), 1))


def carry_out_at_end(hook: Hook, folder: Path, state: str, because: str, show: Show) -> None:
    """Run the command at the end. In its arguments `{folder}`, `{state}` and `{because}` stand for the experiment's
    folder, "complete", "incomplete" or "stopped", and the reason. A failure is reported, and changes nothing else."""
    assert hook.command
    known = {"folder": str(folder), "state": state, "because": because}
    # The program's name is not filled in: it was looked up as it is written, before the first run.
    command = [hook.command[0]]
    for argument in hook.command[1:]:
        command.append(re.sub(r"\{(folder|state|because)\}", lambda name: known[name[1]], argument))
    try:
        _run("The command at the end", command, hook.timeout or DEFAULT_TIMEOUT_S)
    except HookFailed as failed:
        show.say(str(failed))


def seconds_since(began: float) -> float:
    """Return the seconds since `began` of the monotonic clock, to a millisecond."""
    return round(time.monotonic() - began, 3)


def _ask(title: str, question: str, show: Show) -> str:
    """Ask the operator until the answer is yes or no: a typing error must not end days of measuring. Raise HookFailed
    for a no, and without an answer."""
    _forget_typed()
    show.say(f"{title}: {question}")
    show.waits(asks=(title, question))
    while True:
        show.say("Enter: it is done. no: stop here.")
        try:
            answer = sys.stdin.readline()
        except (OSError, ValueError):
            answer = ""
        if not answer:
            raise HookFailed(f"There was no answer to {question!r} ({title}).")
        reply = answer.strip()
        if reply.lower() in YES:
            return reply or "Enter"
        if reply.lower() in NO:
            raise HookFailed(f"The operator answered {reply!r} to {question!r} ({title}).")


def _forget_typed() -> None:
    """Discard all typing before the question: an Enter pressed hours ago does not answer it."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    import termios

    with suppress(OSError, ValueError, termios.error):  # no terminal, or one that is gone: reading tells
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _run(which: str, command: Sequence[str], timeout_s: float) -> str:
    """Run a command, `which` in sentences, and return the end of its output. Raise HookFailed when it fails or takes
    longer than `timeout_s` seconds.

    The output goes to a file: a pipe would stay open while any process of the command is left running.
    """
    scrubbed = environment()
    program = _program(command[0], scrubbed) or command[0]
    with tempfile.TemporaryFile() as output:
        try:
            # In a session of its own it has a group of its own number, by which `_end` reaches all of it.
            process = subprocess.Popen(
                [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=scrubbed, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HookFailed(f"{which} could not be run ({error.strerror}).") from None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with later():
                _end(process)
            raise HookFailed(
                f"{which} had not ended after {timeout_s:g} s and was stopped{_with_output(_text(output))}"
            ) from None
        except BaseException:
            with later():
                _end(process)
            raise
        output_text = _text(output)
    if code:
        how = f"it {exit_clause(code)}"
        raise HookFailed(f"{which} failed ({how}){_with_output(output_text)}")
    return output_text


def _end(process: subprocess.Popen) -> None:
    """Terminate a process and all that it has started; kill what has not ended after GRACE_S."""
    family = []
    with suppress(psutil.Error):
        # Not waited for yet, so that its number is nobody else's.
        family.append(psutil.Process(process.pid))
        family += family[0].children(recursive=True)
    for member in family:
        with suppress(psutil.Error):
            member.terminate()
    until = time.monotonic() + GRACE_S
    while any(map(_runs, family)) and time.monotonic() < until:
        time.sleep(0.05)
    for member in filter(_runs, family):
        with suppress(psutil.Error):
            member.kill()
    # Processes that have lost their parents are still in the group.
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _text(output: IO[bytes]) -> str:
    """Return the end of the output, redacted. Twice the kept length is read, because redacting changes the length."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - 2 * MOST_OUTPUT))
    return without_secrets(output.read().decode(errors="replace").strip())[-MOST_OUTPUT:]


def _with_output(text: str) -> str:
    return f"; it said: {text}" if text else "; it said nothing."


def _program(name: str, among: dict[str, str]) -> str | None:
    return shutil.which(name, path=among["PATH"])


# The work on the storage itself around the runs of an experiment: reconfigure, precondition and probe it.

OVERWRITERS = 8
"""Outstanding writes while preconditioning: enough to keep an array busy, as the short probe's."""


class StorageWork:
    """The storage work of one experiment."""

    def __init__(self, scenario: AnyScenario, engine: Engine, show: Show):
        self._scenario = scenario
        self._engine = engine
        self._show = show

    def refuse_impossible(self) -> None:
        """Raise StallmarkError for what can be known to fail before anything is loaded or asked."""
        for variant in self._scenario.variants:
            if self._scenario.emulates(variant):
                self._refuse_emulated_twice(variant)
            if variant.before:
                refuse_impossible_hook(f"`before` of variant {variant.name!r}", variant.before)
        for key, choice in self._files():
            if reason := can_probe():
                raise StallmarkError(f"{self._scenario.name} asks for `{key}`, but {reason[0].lower()}{reason[1:]}")
            folder_for_files(f"{key}.folder", choice.folder, self._engine)
            if size := choice.size.size_bytes:
                _refuse_small(key, size)

    def refuse_sizes(self, loaded_bytes: int) -> None:
        """Raise StallmarkError for a file that is too small or does not fit. For files sized as a share of the data,
        this is called once the size of the data is known."""
        for key, choice in self._files():
            size = choice.size.resolve(loaded_bytes)
            _refuse_small(key, size)
            places = [Path(variant.place.data) for variant in self._scenario.variants if variant.place]
            for folder in {folder_for_files(f"{key}.folder", choice.folder, self._engine), *places}:
                refuse_little_space(folder if folder.exists() else folder.parent, size)

    def _files(self) -> Iterator[tuple[str, ProbeChoice | PreconditionChoice]]:
        """Yield the parts of the scenario that need a file of their own, each with its key."""
        if self._scenario.probe:
            yield "probe", self._scenario.probe
        if self._scenario.precondition:
            yield "precondition", self._scenario.precondition

    def make(self, variant: Variant) -> PreparedStorage:
        """Prepare the storage for a variant, and describe it. Raise HookFailed when the hook fails."""
        array = self._scenario.array_of(variant)
        hook = precondition = None
        if variant.before:
            # Nothing that the server has taken should be under way while the storage is changed.
            engines.checkpoint(self._engine)
            hook = carry_out_hook(variant.name, variant.before, self._show)
        if self._scenario.precondition:
            precondition = self._precondition(variant)
        return PreparedStorage(Array(**array.in_bytes()) if array else None, hook, precondition)

    def probe(self, title: str, loaded_bytes: int) -> ProbeResult | None:
        """Probe the storage with reads and writes on a file of its own; return None if the scenario asks for no
        probe.

        A share is of the database as loaded: the file must not grow with the database, or two probes could not
        be compared.
        """
        choice = self._scenario.probe
        if choice is None:
            return None
        with self._show.bar(f"{title}: probing the storage itself", None, Phase.PROBING):
            # Pending writes of the server would be measured as the storage's.
            engines.checkpoint(self._engine)
            folder = folder_for_files("probe.folder", choice.folder, self._engine)
            # With the log alone on an emulated array the data are on the real one, and so is their probe.
            devices = self._engine.devices.array if "data" in self._engine.devices.models else None
            size_bytes = choice.size.resolve(loaded_bytes)
            with self._engaged():
                return in_steps(folder, choice.steps(), devices, seconds=choice.seconds, size_bytes=size_bytes)

    def _precondition(self, variant: Variant) -> Precondition:
        choice = self._scenario.precondition
        assert choice
        size = choice.size.resolve(engines.bytes_used(self._engine))
        folder = folder_for_files("precondition.folder", choice.folder, self._engine)
        asked = [Asked(PATTERNS["8k-random-write"], OVERWRITERS)]
        rounds: list[float] = []
        with (
            self._show.bar(f"{variant.name}: writing until writes are steady", choice.round * choice.rounds),
            make_probe_file(folder, size) as file,
        ):
            while len(rounds) < choice.rounds and not steady_rounds(rounds):
                # Each round at other places, or the same few would be overwritten again and again.
                [step] = measure(file, asked, choice.round, seed=len(rounds) + 1)
                rounds.append(step.mean_ms)
                self._show.advance(len(rounds) * choice.round, f"round {len(rounds)}, {step.mean_ms:.2f} ms per write")
        return Precondition(
            size_bytes=size, round_s=choice.round, rounds_ms=tuple(rounds), steady=steady_rounds(rounds)
        )

    @contextmanager
    def _engaged(self) -> Iterator[None]:
        """Make emulated arrays slow while inside; before and after, empty the flash of the data's array."""
        devices = self._engine.devices
        array = devices.array if "data" in devices.models else None
        if array:
            array.empty_flash("data")
        devices.engage()
        try:
            yield
        finally:
            devices.relax()
            if array:
                array.empty_flash("data")

    def _refuse_emulated_twice(self, variant: Variant) -> None:
        """Refuse a variant that emulates an array on a folder that already is on an emulated one."""
        folders = list(self._engine.directories().values())
        if place := variant.place:
            folders = [Path(place.data), Path(place.log or place.data)]
        for folder in folders:
            try:
                array = emulated_array_of(device_behind(folder).name)
            except NoBlockDevice:
                continue
            if array:
                raise StallmarkError(
                    f"{folder} is on the emulated array {array.name}, and variant {variant.name!r} emulates "
                    "another on it (`emulated_array`): remove that, or name other folders (--data-dir, --wal-dir)."
                )


def folder_for_files(key: str, named: str | None, engine: Engine, role: str = "data") -> Path:
    """Return the folder for files of raw I/O: the named one, or one beside the server's data or log. Raise
    StallmarkError if that does not exist or is not known."""
    if named:
        # Not created: with a forgotten mount, the I/O would be on the disk under the mount point.
        if not Path(named).is_dir():
            raise StallmarkError(f"{key}: there is no folder {named}: name one on the storage to test.")
        return Path(named)
    if role not in (folders := engine.directories()):
        raise StallmarkError(
            f"{key}: the files of this server cannot be located from here: name a folder on the same storage that this "
            "machine can write to."
        )
    return folders[role] / PROBE_FOLDER


def _refuse_small(key: str, size_bytes: int) -> None:
    if size_bytes < LEAST_BYTES:
        raise StallmarkError(
            f"{key}.size: {size_bytes / 2**20:.0f} MiB are gone over in a moment: name more than the array has of "
            f"memory, at least {LEAST_BYTES // 2**20} MiB."
        )
