"""The report of an experiment: the page of transactions here, that of queries in `queries`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stallmark import capabilities
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.report import sections
from stallmark.report.columns import variant_key
from stallmark.report.document import Block, Brief, Document, Drawn, Shown, Words, bullets, non_empty
from stallmark.report.kinds import RecordKind
from stallmark.report.picture import picture_of
from stallmark.report.queries import query_document
from stallmark.report.renderers import in_json
from stallmark.report.sections import (
    axis,
    cause,
    ceiling,
    emulated_devices,
    environment,
    server,
    timeline,
    transactions,
    validity,
)
from stallmark.report.text import experiment as words
from stallmark.report.text import reading


def experiment_document(experiment: ExperimentSummary) -> Document:
    picture, head = picture_of(experiment), sections.head_of(experiment)
    verdicts = [sections.verdict(pair) for pair in (experiment.comparison.pairs if experiment.comparison else ())]
    return replace(
        head,
        lead=[Drawn(picture, reading.PICTURE)] if picture else [],
        no_slide=words.NO_SLIDE,
        key=variant_key(experiment),
        sections=non_empty(
            sections.summary_section(experiment, devices=head.banner is not None),
            validity.thresholds_section(experiment),
            validity.service_level_section(experiment, reading.SERVICE_LEVEL),
            sections.findings_section(experiment.findings, *verdicts),
            ceiling.ceiling_section(experiment),
            ceiling.curve_section(experiment),
            axis.section(experiment),
            timeline.section(experiment),
            environment.array_section(experiment),
            cause.waits_section(experiment),
            validity.gates_section(experiment),
            validity.steadiness_section(experiment),
            cause.causes_section(experiment),
            transactions.blocking_section(experiment),
            *(section(experiment) for section in capabilities.parts("section")),
            transactions.transactions_section(experiment),
            server.agreement_section(experiment),
            server.server_section(experiment),
            transactions.errors_section(experiment, transactions.failed_calls(experiment)),
            environment.environment_section(experiment),
        ),
        brief=_brief(experiment, verdicts),
    )


def _brief(experiment: ExperimentSummary, verdicts: Sequence[Block]) -> Brief:
    steps, marks = sections.in_brief(experiment)
    kept = validity.gates_in_brief(experiment), validity.thresholds(experiment)
    return [
        [Words(experiment.title, "main"), Words(experiment.answers, "quiet"), *verdicts],
        [steps],
        bullets(experiment.findings),
        *([Shown(table, header=False)] for table in kept if table),
        validity.outcomes(experiment),
        marks,
        emulated_devices([step.device for step in experiment.steps if step.emulated]),
    ]


def experiment_in_json(experiment: ExperimentSummary) -> dict[str, Any]:
    """Return the summary of an experiment, without its series."""
    result: dict[str, Any] = in_json(experiment)
    if compared := experiment.queries:
        for variant, variant_json in zip(compared.variants, result["queries"]["variants"], strict=True):
            variant_json["emulated"] = variant.emulated
    for run in result["runs"]:
        # Series are as long as the run, and the record has them.
        del run["series"], run["io_by_load"]
        for step in run["steps"]:
            step["emulated"] = bool(step["emulated_roles"])
    return result


TRANSACTIONS = RecordKind(
    summarise, experiment_document, experiment_in_json, lambda summary: {"": summary}, has_curves=True, has_slide=True
)
# Runs of queries have other figures: no users, no checkpoint cycles, no causes.
QUERIES = replace(TRANSACTIONS, document=query_document, has_slide=False)
