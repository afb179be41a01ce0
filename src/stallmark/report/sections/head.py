"""The head of a document about runs on a database: its answer, the line under its title, and its banner."""

from collections.abc import Iterable

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.queries import PHASES
from stallmark.record.devices import DeviceLabel
from stallmark.report.document import Block, Words
from stallmark.report.text import experiment as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED, described, injected


def answer_of(experiment: ExperimentSummary) -> str:
    """Return the answer in a sentence."""
    return sentence(experiment.answer) if experiment.answer else words.NO_FINDING


def headline(experiment: ExperimentSummary) -> list[str]:
    """Return the parts of the line under the title: server, workload, load, runs, start."""
    manifest = experiment.runs[0].manifest
    runs, steps = len(experiment.runs), experiment.steps
    asked = (experiment.queries.variants if experiment.queries else None) or ()
    variants = len(asked) or len({s.variant for s in steps})
    users = sorted({s.users for s in steps})
    return [
        text
        for text in (
            f"{manifest.server.product} {manifest.server.version}".strip(),
            f"{manifest.workload.name} workload" if manifest.workload.name else "",
            _load(experiment, users),
            f"{variants} variants, {runs} runs" if variants > 1 else f"{runs} run{'s' * (runs != 1)}",
            format.moment(experiment.runs[0].started),
        )
        if text
    ]


def _load(experiment: ExperimentSummary, users: list[int]) -> str:
    if compared := experiment.queries:
        return f"scale factor {compared.factor:g}, {PHASES[compared.phase]}"
    return f"{'–'.join(map(str, dict.fromkeys([users[0], users[-1]])))} users" if users else ""


def banner(experiment: ExperimentSummary) -> str | None:
    """Return a sentence about the emulated arrays; None when nothing is emulated."""
    steps = experiment.steps
    emulated = [s for s in steps if s.emulated]
    if not (experiment.emulated or emulated):
        return None
    runs = len({s.run for s in emulated})
    if compared := experiment.queries:  # their phases may be too short to be steps
        runs = sum(variant.runs for variant in compared.variants if variant.emulated)
    return words.emulated_runs(runs, len(experiment.runs))


def emulated_devices(devices: Iterable[DeviceLabel]) -> list[Block]:
    """Return the line that names the emulated arrays; nothing without any."""
    names = described(devices)
    return [Words(f": {injected(names)}", "", EMULATED)] if names else []
