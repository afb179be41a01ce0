"""The wording of the caution on I/O above the device."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark.analysis.storage_cautions import AboveKind
from stallmark.format import count, listed, percent, size
from stallmark.report.text import says
from stallmark.report.text.terms import named


@says(AboveKind.ABOVE)
def _(steps: list[str] | None, share: list[float], limits: Sequence[Mapping[str, Any]]) -> str:
    least, most = map(percent, share)
    shares = most if least == most else f"{least} to {most}"
    told = (
        f"In {named(steps)} {shares} of the time in storage was above the device: I/Os waited before its counters began"
    )
    if limits:
        return f"{told}. When the run began, a control group held the server to {listed(list(map(_limit, limits)))}."
    return (
        f"{told}. It may be a limit of a container or service, a queue before the device, or a stacked or network file "
        "system. No such limit is in the record."
    )


def _limit(limit: Mapping[str, Any]) -> str:
    kind, per_s = limit["limited"], limit["per_s"]
    amount = f"{size(per_s)}{kind.removeprefix('bytes')}" if kind.startswith("bytes") else f"{count(per_s)} {kind}"
    return f"{amount} per second ({limit['file']})"
