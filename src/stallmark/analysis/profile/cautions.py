"""The limits of a profile: time that was not seen, restarts, clocks, and what the server does not tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.profile.intervals import Samples
from stallmark.analysis.profile.kinds import ProfileKind
from stallmark.analysis.profile.rates import MINUTE_S, Rates
from stallmark.record.manifest.course import seconds_at
from stallmark.record.profile.intervals import Intervals, is_known
from stallmark.record.profile.manifest import GAP, ProfileManifest

SHORT_S = 86_400.0
_SHARE_LOST = 0.001
COST_FROM_S = 600.0
"""The shortest time whose cost is told: in a shorter one most of it is the start of the session."""
_COLUMNS = {
    "data stalls": "data.read_stall_ms",
    "log stalls": "log.write_stall_ms",
    "log write_bytes": "log.write_bytes",
    "size_bytes": "data.size_bytes",
    "cpu_s": "server.cpu_s",
    "server": "server.transactions",
    "transactions": "server.transactions",
}
"""Figures that a profile may lack from its beginning, each with a column that has it once it is switched on."""


@dataclass(frozen=True)
class Unseen:
    """A time without intervals, in seconds since 1970. `reason`: in the words of what failed; None where none is
    known. `restart`: the server was started in it."""

    begin: float
    end: float
    reason: str | None
    restart: bool

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def unseen(manifest: ProfileManifest, rates: Rates, samples: Samples | None) -> list[Unseen]:
    """Return the times between intervals in which nothing was seen, and restarts of the server."""
    starts = _starts(manifest, samples) if samples else []
    found = []
    for begin, end in zip(rates.end[:-1], rates.start[1:], strict=True):
        inside = [again for at, again in starts if begin < at <= end + 1.0]
        if end - begin > GAP * manifest.interval_s or inside:
            found.append(Unseen(float(begin), float(end), _reason(manifest, float(begin), float(end)), any(inside)))
    return found


def cautions(
    manifest: ProfileManifest, intervals: Intervals, rates: Rates, lost: Sequence[Unseen], samples: Samples | None
) -> Iterator[Finding]:
    """Yield what a reader must know before he trusts a figure. `samples`: None of an imported profile."""
    if gaps := [one for one in lost if one.seconds > GAP * manifest.interval_s]:
        longest = max(gaps, key=lambda one: one.seconds)
        yield caution(
            ProfileKind.GAPS,
            gaps=len(gaps),
            unseen_s=sum(one.seconds for one in gaps),
            longest_s=longest.seconds,
            longest_begin=longest.begin,
            said=longest.reason,
        )
    if restarts := [one for one in lost if one.restart]:
        yield caution(ProfileKind.RESTARTS, restarts=len(restarts), begin=restarts[0].end)
    if len(manifest.server_names) > 1:
        yield caution(ProfileKind.OTHER_SERVER, servers=manifest.server_names)
    if samples and (jumps := samples.jumps):
        yield caution(ProfileKind.CLOCK_SET, times=len(jumps), begin=jumps[0][0], jump_s=jumps[0][1])
    if (share := _lost_share(manifest, intervals)) > _SHARE_LOST:
        yield caution(ProfileKind.LOST, share=share, imported=manifest.source != "server")
    span_s = float(rates.end[-1] - rates.start[0])
    if span_s < SHORT_S * 0.99:
        yield caution(ProfileKind.SHORT, span_s=span_s)
    # The shortest time that a profile gives a figure for: what is counted later than that moves figures.
    if (longest_s := intervals.longest_transaction_s) and longest_s > MINUTE_S:
        yield caution(ProfileKind.COUNTED_AT_END, longest_s=longest_s)
    if manifest.source == "server" and manifest.server.engine == "postgresql":
        yield info(ProfileKind.CACHED_READS)
        if intervals.waits:
            yield info(ProfileKind.SAMPLED_WAITS, interval_s=manifest.interval_s)
    for name, said in manifest.missing.items():
        if not _came_later(name, manifest, intervals):
            yield info(ProfileKind.MISSING, name=name, said=said)
    cpu = [(one.cpu_s, _length(one.started, one.ended)) for one in manifest.sessions if one.cpu_s and one.ended]
    if cpu and (seconds := sum(length for _, length in cpu)) >= COST_FROM_S:
        spent = sum(one for one, _ in cpu)
        yield info(ProfileKind.COST, share=spent / seconds, server_share=_server_share(samples) if samples else None)


def _starts(manifest: ProfileManifest, samples: Samples) -> list[tuple[float, bool]]:
    """Return when a server answered that had started since, and whether it may be the one before: another one that
    answers in its place was not started again."""
    names = {number: one.name for number, one in enumerate(manifest.servers, 1)}
    found = []
    for place in samples.restarts:
        before, after = (names.get(int(number)) for number in samples.server[place - 1 : place + 1])
        found.append((float(samples.at[place]), None in (before, after) or before == after))
    return found


def _came_later(name: str, manifest: ProfileManifest, intervals: Intervals) -> bool:
    """Return whether something is known after all that was missing when the profile began."""
    if manifest.source != "server":
        return False
    return bool(intervals.waits) if name == "waits" else is_known(intervals.column(_COLUMNS.get(name, "")))


def _reason(manifest: ProfileManifest, begin: float, end: float) -> str | None:
    """Return why nothing was seen, where a gap of the manifest lies in that time."""
    for gap in manifest.gaps:
        started = seconds_at(gap.started)
        if begin - manifest.interval_s <= started < end:
            return gap.reason
    return None


def _lost_share(manifest: ProfileManifest, intervals: Intervals) -> float:
    """Return the share of the seen time in which counts of files were lost: they began anew."""
    shares, seconds = [0.0], intervals.seconds
    for name in intervals.classes:
        counts = intervals.column(f"{name}.writes")
        # Of an imported profile, a class that a file lacks for a time was not recorded then.
        seen = intervals.has_any(name) if manifest.source != "server" else np.ones(len(counts), dtype=bool)
        if is_known(counts):
            shares.append(float(seconds[seen & np.isnan(counts)].sum() / seconds[seen].sum()))
    return max(shares)


def _server_share(samples: Samples) -> float | None:
    """Return the CPU time of our sessions on the server, as a share of a core; None where it does not tell."""
    rises, elapsed_s = np.diff(samples.own_cpu_ms), samples.elapsed_s
    known = np.isfinite(rises) & (rises >= 0)  # a new session begins at zero
    seconds = float(elapsed_s[known].sum())
    return float(rises[known].sum()) / 1000 / seconds if seconds else None


def _length(started: str, ended: str | None) -> float:
    return seconds_at(ended or started) - seconds_at(started)
