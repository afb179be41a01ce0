"""The server of the live page: the page, its figures as JSON, Prometheus' metrics, and the stop."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np
from flask import Flask, Response, abort, jsonify, render_template, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from stallmark import format
from stallmark.experiment.progress import Phase
from stallmark.experiment.status import State
from stallmark.live import metrics
from stallmark.live import wording as text
from stallmark.live.view import LINES, MEANS, WAITS, FollowedRun, LiveTally, Seen, View, mean, means
from stallmark.record.devices import is_emulated
from stallmark.redact import visible
from stallmark.report.figures import dash_of, looks, rounded
from stallmark.report.text import experiment
from stallmark.scenarios.model import QueryScenario
from stallmark.web_access import HEADERS, Access, PageAddress, refuse_port_in_use

FRESH_S = 0.5
"""A look at the experiment serves everybody who asks within it."""
ALIVE_EVERY_S, FAREWELL_S = 15.0, 5.0
_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

_OF_THE_RUN = ("text/html", "application/json", "text/plain")
"""The types of answers that hold names, which people and servers have chosen."""


class Ending:
    """The end of an experiment, pushed to every open page at once: a browser lets a page in the background ask only
    once a minute.
    """

    def __init__(self) -> None:
        self._ended, self._final = threading.Event(), ""
        self._listening: set[int] = set()

    def listen(self) -> Iterator[str]:
        """Yield the final state when there is one, as an event; before, what keeps the connection open."""
        me = threading.get_ident()
        self._listening.add(me)
        try:
            yield ":\n\n"
            while not self._ended.wait(ALIVE_EVERY_S):
                yield ":\n\n"
            yield f"data: {self._final}\n\n"
        finally:
            self._listening.discard(me)

    @property
    def is_awaited(self) -> bool:
        return bool(self._listening)

    def publish(self, final: str) -> None:
        self._final = final
        self._ended.set()
        deadline = time.monotonic() + FAREWELL_S
        while self._listening and time.monotonic() < deadline:
            time.sleep(0.02)


class LivePage:
    """The live page of an experiment. `stop` ends the experiment, or is None if another process runs it."""

    def __init__(self, view: View, address: PageAddress, stop: Callable[[], None] | None = None):
        """Take the address; raise StallmarkError if it is not free."""
        self.access, self._view, self._ending = Access(address), view, Ending()
        self._stoppable = stop is not None
        app = make_app(view, self.access, self._ending, stop)
        # werkzeug would print the reason, and exit.
        refuse_port_in_use(address.host, address.port, "the live page")
        self._server: BaseWSGIServer = make_server(
            address.host, address.port, app, threaded=True, request_handler=_Quiet
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="live page", daemon=True)

    def start(self) -> str:
        """Serve it from now on. Return the URL to open, which holds the token where seeing or stopping needs one."""
        self._thread.start()
        address = self.access.address
        needed = self._stoppable or not address.is_here
        return self.access.url if needed else address.url

    def close(self, complete: bool, because: str) -> None:
        """Let the pages that are open know how it ended, and serve them no longer."""
        self._view.end(State.COMPLETE if complete else State.ENDED, because)
        if self._ending.is_awaited:
            self._ending.publish(self._final())
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _final(self) -> str:
        """Return the last state, with the lines of all runs: afterwards a page cannot request missing ones."""
        seen = self._view.look()
        # Each look reads one more ended run completely.
        for _ in seen.runs:
            seen = self._view.look()
        drawn = {number: lines(run) for number, run in seen.runs.items() if run.sums}
        return visible(json.dumps(state(seen) | {"ended": drawn}, ensure_ascii=False))


def make_app(view: View, access: Access, ending: Ending, stop: Callable[[], None] | None) -> Flask:
    app = Flask(__name__, static_folder=None, template_folder="page")
    app.json.ensure_ascii = False  # type: ignore[attr-defined]  # for `visible`
    access.guard(app)

    @app.after_request
    def protect(answer: Response) -> Response:
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        if answer.mimetype in _OF_THE_RUN:
            answer.set_data(visible(answer.get_data(as_text=True)))
        return answer

    @app.get("/")
    def page() -> str:
        token = access.token if stop and access.fits(request.cookies.get(access.cookie)) else ""
        return render_template("live.html", text=text, means=MEANS, token=token, scenario=view.scenario)

    @app.get("/<name>.<any(css, js):kind>")
    def asset(name: str, kind: str) -> Response:
        if (content := _asset(f"{name}.{kind}")) is None:
            abort(404)
        kept = {"Cache-Control": "max-age=86400"} if name == "plotly" else {}
        return Response(content, mimetype="text/css" if kind == "css" else "text/javascript", headers=kept)

    @app.get("/state")
    def state_now() -> Response:
        return jsonify(state(view.look(FRESH_S)))

    @app.get("/ended")
    def wait_for_end() -> Response:
        return Response(ending.listen(), mimetype="text/event-stream")

    @app.get("/lines/<int:number>")
    def lines_of(number: int) -> Response:
        run = view.look(FRESH_S).runs.get(number)
        if run is None or not run.sums:
            abort(404)
        return jsonify(lines(run))

    @app.get("/metrics")
    def exposed() -> Response:
        return Response(metrics.exposition(view.look(FRESH_S)), content_type=metrics.CONTENT_TYPE)

    @app.post("/stop")
    def stop_it() -> tuple[str, int]:
        if stop is None or not access.fits(request.headers.get("X-Stallmark-Token")):
            abort(403)
        stop()
        return "", 202

    return app


_ASSETS = {
    "plotly.js": ("stallmark.report", "templates/plotly-basic.min.js"),
    "report.css": ("stallmark.report", "templates/report.css"),
    "live.css": ("stallmark.live", "page/live.css"),
    "live.js": ("stallmark.live", "page/live.js"),
}
"""Files that the page needs: the package and the path in it."""


def _asset(name: str) -> str | None:
    if (place := _ASSETS.get(name)) is None:
        return None
    package, path = place
    return files(package).joinpath(path).read_text(encoding="utf-8")


class _Quiet(WSGIRequestHandler):
    """A handler without a log: its lines would hold the token."""

    def log(self, type: str, message: str, *args: object) -> None:
        pass


# The contents of the page, as JSON.

POINTS = 600
"""The most points a line is sent with: more than the pixels it is drawn with."""
LATELY_S = 10
TOP_WAITS = 3
QUIET_S = 5
"""A run that continues writes every second; to check consistency takes longer."""
UNDER_LOAD = (Phase.WARM_UP, Phase.UNSTEADY, Phase.MEASURING, "queries")
"""The phases in which there is something to be seen of the last seconds."""

Json = dict[str, Any]


def state(seen: Seen) -> Json:
    """Return the part of the page that changes every second."""
    status = seen.status
    run = seen.running
    planned = seen.order[seen.present - 1] if seen.present else None
    repeats = Counter(turn.variant.name for turn in seen.order)
    place = None
    if planned:
        name = planned.variant.name
        place = text.run(seen.present or 0, len(seen.order), name, planned.repeat, repeats[name])
    # Outside the load a run has no step and no values of the last seconds.
    doing, loaded = seen.doing, run if seen.phase in UNDER_LOAD else None
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "state": status.state.name.lower(),
        "badge": text.BADGES[status.state.name.lower()],
        "final": seen.final,
        "phase": seen.phase,
        "place": place,
        "step": _step(loaded),
        "left": None if status.left_s is None else experiment.time_left(status.left_s, refined=status.refined),
        "note": _note(seen),
        "progress": min(1.0, doing.done / doing.total) if doing and doing.total else None,
        "said": _message(seen),
        "emulated": any(is_emulated(run.record.manifest) for run in seen.runs.values()),
        "present": seen.present,
        "charts": [{"line": line, "title": LINES[line].title, "unit": LINES[line].unit} for line in _charts(seen)],
        "lately": _lately(loaded),
        "method": [text.EVERY_SECOND, text.MEANS_OF],
        "stamps": [text.EMULATED_ALL, text.EMULATED_PART],
        "transactions": _transactions(run),
        "runs": _runs(seen),
        "lines": lines(run) if run else None,
    }


def lines(run: FollowedRun) -> Json:
    """Return the lines of a run, in seconds since measuring began; `warm_up` ends at 0."""
    steps = run.record.manifest.steps
    began = steps[0].measure_s if steps else 0.0
    # A browser draws POINTS points quickly; a day of seconds becomes means.
    width = max(1, math.ceil(run.seconds / POINTS))
    seconds = np.arange(0, run.seconds, width)
    return {
        "seconds": np.round(seconds + min(width, max(run.seconds, 1)) / 2 - began, 1).tolist(),
        "width": width,
        "steps": [
            [step.name, *(round(index - began, 1) for index in (step.begin_s, step.measure_s))] for step in steps
        ],
        **{line: rounded(means(run.sums, line, width)) for line in LINES if run.sums},
    }


def _note(seen: Seen) -> str:
    """Return the note next to the phase: that of the running process, or that nothing was written for a while."""
    if asks := seen.doing.asks if seen.doing else seen.status.asks:
        return experiment.asks(*asks)
    if seen.doing:
        # Under load the page itself shows the progress.
        is_shown = seen.phase in UNDER_LOAD and not isinstance(seen.scenario, QueryScenario)
        return "" if is_shown else seen.doing.note
    silent_s = seen.status.silent_s or 0.0
    return text.quiet(silent_s) if seen.status.state is State.RUNNING and silent_s > QUIET_S else ""


def _message(seen: Seen) -> str | None:
    status, report = seen.status, seen.folder / "report.html"
    if status.state is State.COMPLETE:
        return text.complete(status.planned, str(report) if report.exists() else None)
    if status.state is State.ENDED:
        return text.end_sentence(status.because, status.whole, status.planned, status.resume)
    if status.state is State.SILENT and status.silent_s:
        return experiment.silent(silent_s=status.silent_s, command=status.resume or "")
    return None


def _charts(seen: Seen) -> list[str]:
    """Return the charts to draw: what every run has, and the classes that sessions waited in most."""
    waited = Counter({line: float(sum(np.nansum(run.sums[line]) for run in _read(seen))) for line in WAITS})
    most = [line for line, sessions in waited.most_common(TOP_WAITS) if sessions > 0]
    of_users = [] if isinstance(seen.scenario, QueryScenario) else ["tps", "latency_ms"]
    return [*of_users, "read_ms", "log_ms", *most, "hit_share"]


def _read(seen: Seen) -> list[FollowedRun]:
    return [run for run in seen.runs.values() if run.sums]


def _step(run: FollowedRun | None) -> str | None:
    steps = run.record.manifest.steps if run else ()
    if not run or not steps:
        return None
    number, _ = run.step_at(run.seconds)
    step = steps[number]
    users = format.users(step.users)
    return users if len(steps) == 1 else f"step {number + 1} of {len(steps)}, {users}"


def _lately(run: FollowedRun | None) -> list[Json]:
    """Return the means of the last seconds of which something is known."""
    if run is None or not run.sums:
        return []
    last, errors = slice(max(0, run.seconds - LATELY_S), run.seconds), sum(run.errors.values())
    rows: list[Json] = [
        {"title": line.title, "unit": line.unit, "value": line.write(mean(run.sums, key, last))}
        for key, line in MEANS.items()
    ]
    return [*rows, {"title": text.ERRORS[0], "unit": text.ERRORS[1], "value": f"{errors:,}", "bad": errors > 0}]


def _transactions(run: FollowedRun | None) -> list[list[str]]:
    """Return the transactions of the present step: those measured, or while it warms up all there were."""
    if run is None:
        return []
    step, measured = run.step_at(run.seconds - 1)
    steps = run.record.manifest.steps
    began = (steps[step].measure_s if measured else steps[step].begin_s) if steps else 0.0
    seconds = run.seconds - math.ceil(began)
    tallies = {name: tally for (*place, name), tally in run.tallies.items() if place == [step, measured]}
    return [_transaction(name, tally, seconds) for name, tally in sorted(tallies.items())]


def _transaction(name: str, tally: LiveTally, seconds: int) -> list[str]:
    """Return a transaction's row: its name, and the values of TRANSACTION_COLUMNS."""
    counts = tally.counts
    done = counts["committed"] + counts["rolled_back"]
    return [
        format.display_name(name),
        format.number(counts["committed"] / seconds if seconds > 0 else None),
        format.number(counts["latency_us"] / 1000 / done if done else None),
        format.number(tally.latencies.percentile_ms(0.95)),
        format.count(counts["rolled_back"]),
        format.count(counts["failed"]),
    ]


def _runs(seen: Seen) -> list[Json]:
    repeated = Counter(planned.variant.name for planned in seen.order)
    look = looks([planned.variant.name for planned in seen.order])
    return [
        {
            "number": number,
            "variant": planned.variant.name,
            "name": text.name(planned.variant.name, planned.repeat, repeated[planned.variant.name], planned.again),
            "colour": look[planned.variant.name].colour,
            "dash": dash_of(planned.repeat),
            "begun": number in seen.runs,
            "present": number == seen.present,
            "live": seen.running is not None and number == seen.present,
            "cut": text.CUT if _cut(seen, number) else "",
            "drawn": number in seen.runs and bool(seen.runs[number].sums),
            "emulated": number in seen.runs and is_emulated(seen.runs[number].record.manifest),
            "figures": _figures(seen.runs.get(number)),
        }
        for number, planned in enumerate(seen.order, 1)
    ]


def _cut(seen: Seen, number: int) -> bool:
    """Return True if a run has ended early."""
    run = seen.runs.get(number)
    return run is not None and run is not seen.running and run.record.incomplete_because is not None


def _figures(run: FollowedRun | None) -> list[str]:
    """Return the means of a run's measured seconds, by MEANS."""
    if run is None or not run.sums:
        return [format.NONE] * len(MEANS)
    return [line.write(mean(run.sums, key, run.measured())) for key, line in MEANS.items()]
