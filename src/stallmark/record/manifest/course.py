"""The course of a run in its manifest: machines, collectors, conditions, and what was left at the end."""

from stallmark.record.manifest.part import ManifestPart, Moment


class Outage(ManifestPart):
    """A time in which a collector measured nothing, in seconds since the run's start; `until_s` is None where it lasted
    to the end. `reason`: the error's words."""

    since_s: float
    until_s: float | None = None
    reason: str


class Collector(ManifestPart):
    """A collector of the run. `unavailable`: why it measured nothing; `limited`: what it could not measure;
    `incomplete`: what its rows lack because it could not be read, as a clause without a full stop; `missed`:
    samples that were passed over, because an earlier one took too long."""

    title: str
    help: str = ""
    interval_s: float | None = None
    unavailable: str | None = None
    limited: str | None = None
    incomplete: str | None = None
    outages: tuple[Outage, ...] = ()
    missed: int = 0


class Condition(ManifestPart):
    """A consistency condition, checked after the run. `holds` is None when it was left out, or when the server refused
    it in the words of `refused`; `offending` counts rows, or what `counted` names."""

    name: str
    statistical: bool = False
    cost: str = ""
    holds: bool | None
    offending: int = 0
    seconds: float = 0.0
    detail: str = ""
    counted: str = "rows"
    refused: str = ""


class Took(ManifestPart):
    """The seconds that a run took: `prepare_s` until its load began, its load, and what came after it. The last two are
    None while they go on, and of a run that ended early."""

    prepare_s: float
    load_s: float | None = None
    end_s: float | None = None

    @property
    def seconds(self) -> float | None:
        """Return all of it, of a whole run."""
        return None if self.load_s is None or self.end_s is None else self.prepare_s + self.load_s + self.end_s


class Machine(ManifestPart):
    """The machine that the driver ran on."""

    system: str | None = None
    distribution: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    python: str | None = None


class LoadMachine(Machine):
    """One load machine of several; its clock was compared to within `clock_within_ms`."""

    number: int
    executors: int
    clock_within_ms: float


class ExpectedMachines(ManifestPart):
    """The load machines that a run waited for, and the address at which they were to connect."""

    count: int
    host: str
    port: int


class Unheard(ManifestPart):
    """The transactions that did not end even when cancelled; the executors that were killed at the end because their
    last report did not come (`silent`), and those that ended unasked before (`lost`)."""

    unfinished: int = 0
    silent: int = 0
    lost: int = 0

    @property
    def executors(self) -> int:
        """Return how many executors there are of which nobody knows what they did last."""
        return self.silent + self.lost


class LeftWaiting(ManifestPart):
    """Transactions that waited when the run ended: `arrivals` were due and not yet started, `deferred` ones of the
    background sessions were not due yet, or not begun. Of queries `arrivals` are those of the whole run that no stream
    was free for: what waits when a rate changes is forgotten."""

    arrivals: int = 0
    deferred: int = 0


class External(ManifestPart):
    """A file of external measurements, and how its times were understood. `offset_s` is added to them; `span` is UTC,
    ISO 8601; `notes` name what was left out."""

    name: str
    file: str
    format: str
    time_zone: str
    offset_s: float
    span: tuple[Moment, Moment]
    samples: int
    interval_s: float
    counters: int
    notes: tuple[str, ...] = ()


class Ended(ManifestPart):
    """The reason why an experiment ended with this run although variant `before` was to follow. `because` is None while
    that is prepared, and of an experiment that was killed meanwhile."""

    before: str
    because: str | None = None
