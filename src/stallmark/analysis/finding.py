"""A finding: a conclusion of an analysis, as data. `report/text` writes the sentences; no code reads them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stallmark.record.manifest import Manifest


class Severity(StrEnum):
    """The weight that a reader must give to a finding."""

    INFO = "info"
    CAUTION = "caution"
    """The finding limits the validity of the figures."""
    INVALID = "invalid"
    """The figures it is about must not be compared."""


class Kind(StrEnum):
    """The base of the kinds of findings. Each room of the analysis has an enum of its own, next to the code that finds
    them. The values are unique over all of them."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    The names of facts carry their units, as in `measured_s` or `share`. Values are numbers, names that the user gave,
    device labels, enum members, other findings (a reason), or lists of these, but never a sentence of the report. The
    fact `said` holds the original words of a server, a tool or an error.
    """

    kind: Kind
    severity: Severity = Severity.INFO
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


def info(kind: Kind, **facts: Any) -> Finding:
    """Return a finding that limits nothing."""
    return Finding(kind, Severity.INFO, facts)


def caution(kind: Kind, **facts: Any) -> Finding:
    """Return a finding that limits the validity of the figures."""
    return Finding(kind, Severity.CAUTION, facts)


def invalid(kind: Kind, **facts: Any) -> Finding:
    """Return a finding whose figures must not be compared."""
    return Finding(kind, Severity.INVALID, facts)


# The kinds of the conclusions of an experiment.
class ExperimentKind(Kind):
    DATA_WRONG = "data_wrong"
    NOTHING_MEASURED = "nothing_measured"
    STEPS_LEFT_OUT = "steps_left_out"
    NO_STEADY_STATE = "no_steady_state"
    AGAINST_FIRST = "variants_against_first"
    MOST_USERS = "throughput_by_users"
    KNEE = "throughput_knee"
    POOL = "throughput_by_pool"
    POOL_GAIN = "largest_gain_by_pool"
    DEVICES = "throughput_by_device"
    DEVICES_UNLIKE = "devices_not_compared"
    FLASH = "flash_use"
    ONE_VARIANT = "throughput_of_one_variant"
    VARIANTS_ALIKE = "variants_alike"
    VARIANTS = "throughput_by_variant"
    STREAMS = "cost_of_streams"
    DISTURBED = "cost_of_maintenance"
    OVER_LIMIT = "transactions_over_limit"
    STORAGE_LIMITS = "storage_limits"
    STORAGE_LIMITS_SOMETIMES = "storage_limits_in_some_runs"
    STORAGE_DOES_NOT_LIMIT = "storage_does_not_limit"
    STORAGE_NOT_KNOWN = "storage_not_judged"
    DRIVER_LIMITS = "driver_limits"
    RATE_GIVEN = "throughput_is_the_rate_of_arrivals"
    ONE_RUN_EACH = "one_run_each"
    SPREAD = "spread_of_runs"


# Experiments that ended before all their variants were run.


class EndKind(Kind):
    EXPERIMENT = "experiment_ended_early"


def early_ends(made: Iterable[Manifest]) -> Iterator[Finding]:
    """Yield the variant before which an experiment ended early, and the reason, or None if it was killed or still
    prepares the variant."""
    for manifest in made:
        if ended := manifest.ended:
            reason = " ".join(ended.because.split()) if ended.because else None
            yield caution(EndKind.EXPERIMENT, before=ended.before, said=reason)


# Runs on data of several versions: they are not compared, since rows, inputs or procedures differ.


class DataKind(Kind):
    MIXED_VERSIONS = "mixed_data_versions"


def mixed_versions(manifests: Iterable[Manifest]) -> Finding | None:
    """Return the reason not to compare runs on data of several versions; None if all versions that are known agree."""
    versions: dict[str, set[int]] = {}
    for manifest in manifests:
        for workload in [load.workload for load in manifest.loads if load.workload] or [manifest.workload]:
            if workload.version is not None:
                versions.setdefault(workload.name, set()).add(workload.version)
    mixed = next((name for name, known in versions.items() if len(known) > 1), None)
    return None if mixed is None else invalid(DataKind.MIXED_VERSIONS, workload=mixed, versions=sorted(versions[mixed]))
