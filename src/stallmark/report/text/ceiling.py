"""The wording of a ceiling: the load that was searched for, at which the service level holds."""

from collections.abc import Mapping
from typing import Any

from stallmark.analysis.bottleneck.device_verdict import DeviceKind, JudgedDevice
from stallmark.analysis.ceiling import CeilingKind
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import Finding, Kind
from stallmark.format import factor, listed, number, plural, quoted, short, spoken
from stallmark.report.text import clause, says
from stallmark.report.text.templates import Format
from stallmark.report.text.terms import UNSURE

_VERDICTS = {"held": "held", "broke": "broke the service level", "undecided": "too little seen to tell"}
_TRIED = {
    "first": "first",
    "double": "doubled",
    "halve": "gap halved",
    "above": "above, again",
    "ceiling": "ceiling, again",
    "balance": "in the balance, again",
}
METHOD = (
    "A level is judged on the seconds it was measured, in ten parts. It holds where the 95 % interval keeps every "
    "limit, and is measured up to three times as long where that is open. A level in the balance even then counts by "
    "its figure."
)


def level_verdict(verdict: str) -> str:
    """Return the verdict on a level in words."""
    return _VERDICTS[verdict]


def tried(why: str) -> str:
    """Return why a level was tried."""
    return _TRIED[why]


def level(of: str, value: float) -> str:
    """Return a level in words: "240 users", "1,200 per second", "1.25 times the load"."""
    if of == "load":
        return f"{_plain(value)} times the load"
    return f"{_plain(value)} user{'s' * (value != 1)}" if of == "users" else f"{_plain(value)} per second"


def limit(one: list[Any]) -> str:
    """Return a limit in words: "a mean read time of 10 ms", "p95 of Trade-Orders of 50 ms"."""
    of, transaction, percentile, limit_ms = one
    if of == "reads":
        return f"a mean read time of {_plain(limit_ms)} ms"
    whose = f" of {plural(transaction)}" if transaction else ""
    return f"{percentile}{whose} of {_plain(limit_ms)} ms"


SENTENCES: Mapping[Kind, str] = {
    # The verbs all begin with a c, which “whose” ends on.
    CeilingKind.AT_LEAST: (
        "{facts:whose}arries at least {facts:holds}{facts:rate} within {limits:limits}: the search ended at its `to`."
    ),
    CeilingKind.UNCONFIRMED: (
        "{facts:whose}annot be given a ceiling: levels contradicted each other until no more were to be tried, the "
        "last near {facts:ends}. Measure longer."
    ),
    CeilingKind.ENDED: "{facts:whose}annot be given a ceiling: the run ended before the search did.",
    CeilingKind.REPEATS: (
        "{facts:whose}arries {mean:number} {of:unit} (95 % interval {low:number} to {high:number}, {runs} runs)"
        "{facts:rate} within {limits:limits}."
    ),
}


@says(CeilingKind.FOUND)
def _(
    variant: str | None, repeat: int | None, of: str, holds: float, breaks: float, asked: list[float],
    per_s: float | None, primary: str | None, limits: list[list[Any]], missed: list[list[Any]], limit: Finding | None,
) -> str:  # fmt: skip
    beyond = f". At {level(of, breaks)} {_misses(missed)}" if missed else ""
    return (
        f"{_whose(variant, repeat)}arries {_plain(holds)} to {level(of, breaks)}{_rate(per_s, primary)} within "
        f"{_listed(limits)}{_ends(limit)}{beyond}."
    )


@says(CeilingKind.NONE)
def _(variant: str | None, repeat: int | None, of: str, breaks: float, missed: list[list[Any]], **_: Any) -> str:
    if not missed:
        return (
            f"{_whose(variant, repeat)}ould not be judged even at {level(of, breaks)}: too few reads or transactions "
            "were seen. Raise `measure`, or `from`."
        )
    return f"{_whose(variant, repeat)}arries not even {level(of, breaks)}: {_misses(missed)}."


@says(CeilingKind.RATIO)
def _(
    variants: list[str], of: str, levels: list[float], ratio: float, low: float | None, high: float | None,
    verdict: Verdict,
) -> str:  # fmt: skip
    a, b = variants
    between = f" ({factor(low)} to {factor(high)})" if low is not None and high is not None else ""
    doubt = f"; {UNSURE[verdict]}" if verdict in UNSURE else ""
    return (
        f"The ceiling of {quoted([b])} is {factor(ratio)}{between} that of {quoted([a])}: {level(of, levels[1])} "
        f"against {_plain(levels[0])}{doubt}."
    )


@says(CeilingKind.LIMIT)
def _(variant: str | None, repeat: int | None, of: str, breaks: float, verdict: Finding) -> str:
    where = f" with {quoted([variant])}" if variant else ""
    where += f" in repeat {repeat}" if repeat else ""
    return f"At {level(of, breaks)}{where}: {clause(verdict)}."


@says(CeilingKind.DRIVER)
def _(variant: str | None, of: str, breaks: float, runs: int, repeats: int) -> str:
    some = f" in {runs} of {repeats} runs" if runs < repeats else ""
    where = f"of {quoted([variant])} " if variant else ""
    return (
        f"The ceiling {where}may be the driver’s: at {level(of, breaks)} the driver was the bottleneck{some}. Use more "
        "load machines, or ones with more CPU."
    )


_LIMITS = {
    DeviceKind.LIMITS: "{} is the limit",
    DeviceKind.LATENCY_LIMITS: "{} is the limit",
    DeviceKind.ONE_OF_SEVERAL: "{} is one limit of several",
    DeviceKind.WITH_CPUS: "{} and the CPUs are limits together",
    DeviceKind.CPUS_LIMIT: "the CPUs are the limit",
}
_DEVICES = {JudgedDevice.DATA: "the storage of the data", JudgedDevice.LOG: "the log"}


def limit_of(verdict: Finding | None) -> str | None:
    """Return what is the limit by the verdict on a device, as a clause; None where that was not told."""
    said = _LIMITS.get(DeviceKind(verdict.kind)) if verdict else None
    device = JudgedDevice(verdict.facts.get("device", JudgedDevice.DATA)) if verdict else JudgedDevice.DATA
    return said.format(_DEVICES[device]) if said else None


def _ends(verdict: Finding | None) -> str:
    """Return what ends first, where that was told."""
    said = limit_of(verdict)
    return f"; beyond it {said}" if said else ""


def _whose(variant: str | None, repeat: int | None) -> str:
    """Return whose ceiling it is, up to the c with which all verbs begin."""
    again = f"In repeat {repeat} " if repeat else ""
    name = quoted([variant]) if variant else f"{'the' if again else 'The'} server"
    return f"{again}{name} c"


def _rate(per_s: float | None, primary: str | None) -> str:
    if per_s is None:
        return ""
    return f" ({number(per_s)} {plural(spoken(primary)) + '/s' if primary else 'TPS'})"


def _misses(missed: list[list[Any]]) -> str:
    limits = [one for one in missed if one[0] not in ("backlog", "queries")]
    said = ["ever more arrivals wait" for of, *_ in missed if of == "backlog"]
    said += [f"ever more queries of {load} wait" for of, load, *_ in missed if of == "queries"]
    return listed(said + [f"it misses {_listed(limits)}"] * bool(limits))


def _listed(limits: list[list[Any]]) -> str:
    return listed([limit(one) for one in limits])


def _plain(value: float) -> str:
    """Write a number that was chosen, not measured: 12, not 12.0."""
    return short(value, 4)


FORMATS: Mapping[str, Format] = {
    "ends": lambda facts: " and ".join(
        level(facts["of"], end) for end in (facts["holds"], facts["breaks"]) if end is not None
    ),
    "holds": lambda facts: level(facts["of"], facts["holds"]),
    "limits": _listed,
    "rate": lambda facts: _rate(facts["per_s"], facts["primary"]),
    "unit": {"users": "users", "rate": "per second", "load": "times the load"}.__getitem__,
    "whose": lambda facts: _whose(facts["variant"], facts.get("repeat")),
}
