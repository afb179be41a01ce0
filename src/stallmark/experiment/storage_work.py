"""The work on the storage itself around the runs of an experiment: reconfigure, precondition and probe it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stallmark.engines import several
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment import hooks
from stallmark.experiment.manifest import PreparedStorage
from stallmark.experiment.progress import Phase, Show
from stallmark.record.manifest.storage import Array, Precondition
from stallmark.record.probe import Asked, ProbeResult
from stallmark.scenarios.model import AnyScenario, Variant
from stallmark.scenarios.probe import PreconditionChoice, ProbeChoice
from stallmark.stats.steady_state import steady_rounds
from stallmark.storage import probe
from stallmark.storage.array_facts import emulated_array_of
from stallmark.storage.block_devices import NoBlockDevice, device_behind
from stallmark.storage.emulator import PROBE_FOLDER

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
                hooks.refuse_impossible(f"`before` of variant {variant.name!r}", variant.before)
        for key, choice in self._files():
            if why := probe.can_probe():
                raise StallmarkError(f"{self._scenario.name} asks for `{key}`, but {why[0].lower()}{why[1:]}")
            self._folder(key, choice.folder)
            if size := choice.size.size_bytes:
                _refuse_small(key, size)

    def refuse_sizes(self, loaded_bytes: int) -> None:
        """Raise StallmarkError for a file that is too small or does not fit. Called once the size of the data is known,
        for files sized as a share of it."""
        for key, choice in self._files():
            size = choice.size.resolve(loaded_bytes)
            _refuse_small(key, size)
            places = [Path(variant.place.data) for variant in self._scenario.variants if variant.place]
            for folder in {self._folder(key, choice.folder), *places}:
                probe.refuse_little_space(folder if folder.exists() else folder.parent, size)

    def _files(self) -> Iterator[tuple[str, ProbeChoice | PreconditionChoice]]:
        """Yield what the scenario asks for that needs a file of its own, each with its key."""
        if self._scenario.probe:
            yield "probe", self._scenario.probe
        if self._scenario.precondition:
            yield "precondition", self._scenario.precondition

    def make(self, variant: Variant) -> PreparedStorage:
        """Prepare the storage for a variant, and describe it. Raise HookFailed when the hook fails."""
        array = self._scenario.array_of(variant)
        hook = precondition = None
        if variant.before:
            several.checkpoint(self._engine)  # nothing that the server has taken should be under way meanwhile
            hook = hooks.carry_out(variant.name, variant.before, self._show)
        if self._scenario.precondition:
            precondition = self._precondition(variant)
        return PreparedStorage(Array(**array.described()) if array else None, hook, precondition)

    def probe(self, title: str, loaded_bytes: int) -> ProbeResult | None:
        """Probe the storage with reads and writes on a file of its own; return None where the scenario asks for no
        probe.

        A share is of the database as loaded: the file must not grow with the database, or two probes could not
        be compared.
        """
        choice = self._scenario.probe
        if choice is None:
            return None
        with self._show.bar(f"{title}: probing the storage itself", None, Phase.PROBING):
            several.checkpoint(self._engine)  # what the server has still to write is not the storage's doing
            folder = self._folder("probe", choice.folder)
            # With the log alone on an emulated array the data are on the real one, and so is their probe.
            devices = self._engine.devices.array if "data" in self._engine.devices.models else None
            size_bytes = choice.size.resolve(loaded_bytes)
            with self._engaged():
                return probe.in_steps(folder, choice.steps(), devices, seconds=choice.seconds, size_bytes=size_bytes)

    def _precondition(self, variant: Variant) -> Precondition:
        choice = self._scenario.precondition
        assert choice
        size = choice.size.resolve(several.bytes_used(self._engine))
        folder = self._folder("precondition", choice.folder)
        asked = [Asked(probe.PATTERNS["8k-random-write"], OVERWRITERS)]
        rounds: list[float] = []
        with (
            self._show.bar(f"{variant.name}: writing until writes are steady", choice.round * choice.rounds),
            probe.own_file(folder, size) as file,
        ):
            while len(rounds) < choice.rounds and not steady_rounds(rounds):
                # Each round at other places, or the same few would be overwritten again and again.
                [step] = probe.measure(file, asked, choice.round, seed=len(rounds) + 1)
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
        """Refuse a variant that emulates an array on a folder that already lies on an emulated one."""
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
                    f"{folder} lies on the emulated array {array.name}, and variant {variant.name!r} emulates "
                    "another on it (`emulated_array`): remove that, or name other folders (--data-dir, --wal-dir)."
                )

    def _folder(self, key: str, named: str | None) -> Path:
        if named:
            if not Path(named).is_dir():
                raise StallmarkError(f"{key}.folder: there is no folder {named}: name one on the array.")
            return Path(named)
        data = self._engine.directories().get("data")
        if data is None:
            raise StallmarkError(
                f"{self._scenario.name} asks for `{key}`, but nobody can tell from here where the data of this server "
                f"lie: name a folder on the same storage that this machine can write to ({key}: {{folder: …}})."
            )
        return data / PROBE_FOLDER


def _refuse_small(key: str, size_bytes: int) -> None:
    if size_bytes < probe.LEAST_BYTES:
        raise StallmarkError(
            f"{key}.size: {size_bytes / 2**20:.0f} MiB are gone over in a moment: name more than the array has of "
            f"memory, at least {probe.LEAST_BYTES // 2**20} MiB."
        )
