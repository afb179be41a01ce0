"""`stallmark compare`, `plan` and `whatif`: variants of runs already made, judged, planned and predicted."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.markup import escape

from stallmark.cli.command import Command
from stallmark.cli.exit_codes import INCONCLUSIVE, VERDICT
from stallmark.cli.options import json_option, junit_option, markdown_option, parsing, runs_argument, timezone_option
from stallmark.cli.output import STANDARD_OUTPUT, Outputs, err, out, page_file, print_markup, print_path
from stallmark.errors import StallmarkError, WrongOption

if TYPE_CHECKING:
    from stallmark.analysis.experiment import ExperimentSummary
    from stallmark.report.document import Brief

T = TypeVar("T")


@click.command(cls=Command)
@runs_argument
@click.option("--baseline", metavar="NAME", help="Side to compare the others with [default: the first that ran].")
@click.option(
    "--between", type=click.Choice(["variants", "experiments"]),
    help="Kind of the sides to compare [default: variants if there are several].",
)  # fmt: skip
@click.option(
    "--varied", multiple=True, metavar="SETTING",
    help="Server setting that was changed by hand between the sides, by its name in the report.",
)  # fmt: skip
@click.option(
    "--out", "target", type=click.Path(path_type=Path),
    help="HTML file to write [default: comparison.html in RUN, none with --json or --markdown -].",
)  # fmt: skip
@markdown_option
@junit_option
@click.option(
    "--fail-if", "rule", metavar="RULE",
    help="Exit with 5 if a side is “worse”, “worse by 5 %”, “not better”, “not better by 10 %” or “not within 5 %”, or "
    "has no verdict; with 6 if these runs cannot decide.",
)  # fmt: skip
@timezone_option()
@json_option
def compare(
    runs: tuple[Path, ...], baseline: str | None, between: str | None, varied: tuple[str, ...], target: Path | None,
    markdown: str | None, junit: Path | None, rule: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare variants over their runs: better, worse, no difference shown, or not comparable.

    RUN is a run's folder or an experiment's; several are combined. A verdict requires 3 runs of each side.
    """
    from stallmark.analysis.compare.verdicts import compare_runs
    from stallmark.analysis.rules import fail_rule
    from stallmark.cli.summaries import summarise_each
    from stallmark.report.comparison import comparison_document, summary_for_a_ticket
    from stallmark.report.renderers import dumped, in_json, page_beside, write_pages
    from stallmark.report.results import FAIL_IF, Case, comparison_case

    if junit and rule is None:
        raise WrongOption("--junit has nothing that could fail: name a rule with --fail-if.")
    failing = fail_rule(rule, of_runs=False) if rule is not None else None
    for_machines = as_json or markdown == STANDARD_OUTPUT
    target = target or page_file(runs[0], "comparison.html", for_machines=for_machines)
    outputs = Outputs(target, as_json, markdown=markdown, junit=junit)
    outputs.refuse()
    experiments = summarise_each(runs)
    compared = _make_each(
        experiments,
        lambda experiment: compare_runs(experiment.runs, between, baseline, varied),  # type: ignore[arg-type]
    )
    pages = {name: page_beside(target, name) if name else target for name in compared} if target else {}
    documents = {name: comparison_document(experiments[name], compared[name]) for name in pages}
    for name, page in pages.items():
        write_pages(documents[name], page)
    outputs.write_markdown("\n\n".join(summary_for_a_ticket(comparison, name) for name, comparison in compared.items()))
    if as_json:
        where = {name: str(page.resolve()) for name, page in pages.items()}
        documents_by_name = {
            name: in_json(comparison) | {"report": where.get(name)} for name, comparison in compared.items()
        }
        click.echo(dumped(documents_by_name.get("", {"loads": documents_by_name})))
    elif outputs.in_words:
        for name, document in documents.items():
            _print_brief(name, document.brief)
            print_path(pages[name])
    if rule is None or failing is None:
        return
    cases = [comparison_case(failing, rule, comparison, name) for name, comparison in compared.items()]
    # A load that could not be compared fails the rule.
    failed = [name for name in experiments if name not in compared]
    cases += [Case(FAIL_IF, f"{name}: {rule}", False, f"{name}: it was not compared") for name in failed]
    outputs.write_junit(cases)
    for word, code, passed in (("Failed", VERDICT, False), ("Inconclusive", INCONCLUSIVE, None)):
        if reasons := [case.reason for case in cases if case.passed is passed]:
            print_markup(err, f"[bold red]{word}:[/] {escape('; '.join(reasons))}.")
            sys.exit(code)


def _make_each(
    experiments: "Mapping[str, ExperimentSummary]", make: "Callable[[ExperimentSummary], T]"
) -> dict[str, T]:
    """Return the result of `make` for each load, and print the error of each load that has none. Raise StallmarkError
    if all fail.
    """
    made: dict[str, T] = {}
    failed: dict[str, StallmarkError] = {}
    for name, experiment in experiments.items():
        try:
            made[name] = make(experiment)
        except StallmarkError as error:
            failed[name] = error
    # An error of one load does not hide the results of the others.
    if not made:
        raise next(iter(failed.values()))
    for name, reason in failed.items():
        print_markup(err, escape(f"{name}: {reason}"))
    return made


def _print_answers(answers: Mapping[str, T], brief: "Callable[[T], Brief]", as_json: bool) -> None:
    """Print the answer for each load by its name, or for the only one."""
    from stallmark.report.renderers import dumped, in_json

    if as_json:
        click.echo(dumped(in_json(answers.get("", {"loads": answers}))))
        return
    for name, answer in answers.items():
        _print_brief(name, brief(answer))


def _print_brief(name: str, brief: "Brief") -> None:
    from stallmark.report.renderers import in_terminal

    out.print(*([f"[bold]{escape(name)}[/]\n"] if name else []), in_terminal(brief), sep="")


@parsing
def _share(text: str) -> float:
    from stallmark.quantities import parse_share

    try:
        return parse_share(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a difference: write it as 5% or 2.5%, above zero") from None


@click.command(cls=Command)
@runs_argument
@click.option(
    "--difference", "wanted", default="5%", show_default=True, callback=_share, metavar="PERCENT",
    help="Difference to be shown.",
)  # fmt: skip
@json_option
def plan(runs: tuple[Path, ...], wanted: float, as_json: bool) -> None:
    """Show how many runs are needed to show a difference, given the variation between RUNs.

    The number of runs gives a power of 80 % in the two-sided test at the 5 % level that `compare` uses.
    """
    from stallmark.analysis.compare.plan import plan_runs
    from stallmark.cli.summaries import summarise_each_alike
    from stallmark.report.results import plan_in_brief

    plans = _make_each(summarise_each_alike(runs), lambda experiment: plan_runs(experiment.runs, wanted))
    _print_answers(plans, plan_in_brief, as_json)


@parsing
def _in_ms(texts: Sequence[str]) -> list[float]:
    return [_milliseconds(text) for text in texts]


def _milliseconds(text: str) -> float:
    from stallmark.quantities import parse_seconds

    with suppress(ValueError):
        if 0 < (seconds := parse_seconds(text)) <= 60:
            return seconds * 1000
    raise ValueError(f"{text} is not a time of a read: write it as 1ms or 0.2ms, above zero")


@click.command(cls=Command)
@runs_argument
@click.option(
    "--read", "times_ms", multiple=True, callback=_in_ms, metavar="TIME",
    help="Mean read time to predict for, such as 1ms; repeatable [default: 5, 2, 1, 0.5 and 0.2 ms].",
)  # fmt: skip
@json_option
def whatif(runs: tuple[Path, ...], times_ms: list[float], as_json: bool) -> None:
    """Predict throughput at other read times, from existing runs.

    RUN is a run's folder or an experiment's. If a variant was also run with another read time, the error of predicting
    that run is shown too.
    """
    from stallmark.analysis.prediction import WHAT_IF_MS, predict_throughputs
    from stallmark.cli.summaries import summarise_each_alike
    from stallmark.report.results import predictions_in_brief
    from stallmark.report.text import sentence

    wanted = times_ms or list(WHAT_IF_MS)
    predictions = {
        name: predict_throughputs(summary.steps, wanted) for name, summary in summarise_each_alike(runs).items()
    }
    if not any(answer.found for answer in predictions.values()):
        left_out = [sentence(finding) for answer in predictions.values() for finding in answer.left_out]
        raise StallmarkError(" ".join(dict.fromkeys(left_out)))
    _print_answers(predictions, predictions_in_brief, as_json)
