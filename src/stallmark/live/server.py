"""The server of the live page: the page, its figures as JSON, Prometheus' metrics, and the stop."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from importlib.resources import files

from flask import Flask, Response, abort, jsonify, render_template, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from stallmark.errors import StallmarkError
from stallmark.experiment.status import State
from stallmark.live import metrics
from stallmark.live import wording as text
from stallmark.live.state import lines, state
from stallmark.live.view import MEANS, View
from stallmark.redact import visible
from stallmark.web_access import HEADERS, Access, PageAddress

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
        try:
            self._server: BaseWSGIServer = make_server(
                address.host, address.port, app, threaded=True, request_handler=_Quiet
            )
        except (OSError, SystemExit) as error:  # werkzeug exits where a port is taken
            reason = getattr(error, "strerror", None) or "it is in use"
            raise StallmarkError(
                f"Port {address.port} is not free for the live page ({reason}): name another."
            ) from None
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
