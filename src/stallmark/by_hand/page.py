"""Locust's own page on the conductor: its charts, and the users and the spawn rate, changed by hand.

Locust would start and stop its own users. Here each change goes to the controller, which makes it a step of the record.
"""

import csv
import io
import time
from collections.abc import Callable, Sequence

import gevent
from flask import Response, abort, jsonify, request
from locust import argument_parser
from locust.env import Environment
from locust.runners import STATE_INIT
from locust.stats import stats_history
from locust.web import WebUI

from stallmark.driver.load import LoadSpec, LocustPage
from stallmark.driver.locust_statistics import LocustStatistics
from stallmark.driver.rows import Rows
from stallmark.errors import StallmarkError
from stallmark.format import display_name
from stallmark.redact import spreadsheet
from stallmark.web_access import HEADERS, Access, PageAddress

_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self' data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
BEGUN_WITHIN_S = FAREWELL_S = 5.0

# Locust's dialog closes whatever the answer is, and shows no refusal.
_SHOW_REFUSALS = """<script>
const locusts = window.fetch;
window.fetch = async (...asked) => {
  const answer = await locusts(...asked);
  if (new URL(answer.url).pathname === "/swarm" && answer.ok) {
    const { success, message } = await answer.clone().json();
    if (!success) window.alert(message);
  }
  return answer;
};
</script>"""


class Page:
    """Locust's page. `change` asks for users and their spawn rate, and raises StallmarkError if that cannot be; `stop`
    asks for the end of the load."""

    def __init__(
        self,
        environment: Environment,
        where: LocustPage,
        loads: Sequence[LoadSpec],
        change: Callable[[int, float], None],
        stop: Callable[[], None],
    ):
        self._environment, self._loads = environment, loads
        self._change, self._stop = change, stop
        environment.locustfile = "Stallmark"
        environment.host = ", ".join(dict.fromkeys(load.workload for load in loads))
        # Locust would take the options that it shows from its own command line, files and environment.
        argument_parser.ui_extra_args_dict = lambda args=None: {}  # type: ignore[assignment]
        self._web = WebUI(environment, where.host, where.port, delayed_start=True)
        self._statistics = LocustStatistics(environment, time.time())
        self._looks: list[float] = []
        self._make_ours(Access(PageAddress(where.host, where.port), where.token))

    def open(self) -> None:
        """Serve the page from now on; requests are answered once the load has begun."""
        self._web.start()
        gevent.sleep(0)  # until it listens

    def begin(self, start_ns: int) -> None:
        """Count for a load that begins at `start_ns` of the monotonic clock."""
        start_s = time.time() + (start_ns - time.monotonic_ns()) / 1e9
        self._statistics = LocustStatistics(self._environment, start_s)
        gevent.spawn(stats_history, self._environment.runner)

    def count(self, rows: Rows) -> None:
        """Add what executors have reported to Locust's statistics."""
        self._statistics.add(rows)

    def close(self) -> None:
        """Let the pages that are open see that the load is over: they ask every two seconds, and the first answer may
        be one that Locust has kept."""
        ended_s = time.monotonic()
        if not self._looks or self._looks[-1] < ended_s - FAREWELL_S:
            return
        with gevent.Timeout(FAREWELL_S, False):
            while sum(look_s > ended_s for look_s in self._looks[-2:]) < 2:
                gevent.sleep(0.1)

    def _make_ours(self, access: Access) -> None:
        """Have Locust's application ask us for what changes the load, and answer those alone who may see it."""
        app = self._web.app
        assert app
        app.debug = False
        access.guard(app)

        @app.before_request
        def refuse_change() -> None:
            with gevent.Timeout(BEGUN_WITHIN_S, False):
                while self._environment.runner and self._environment.runner.state == STATE_INIT:
                    gevent.sleep(0.05)  # Locust would offer to start a test
            if request.method not in ("GET", "HEAD") and not access.fits(request.cookies.get(access.cookie)):
                abort(403)
            if request.path == "/stats/requests":
                # The farewell needs the last two alone.
                self._looks = [*self._looks[-1:], time.monotonic()]

        # Locust's own lets every site read its answers.
        app.after_request_funcs[None] = [_protect]
        # All views of Locust's that change the load are replaced; those without a use here answer 404.
        ours = {
            "swarm": self._swarm,
            "stop": self._end,
            "tasks": self._tasks,
            "update_user": lambda: abort(404),
            "login": lambda: abort(404),
        }
        for name, view in ours.items():
            app.view_functions[f"locust.{name}"] = view  # type: ignore[assignment]

    def _swarm(self) -> Response:
        try:
            users, spawn_rate = int(request.form["user_count"]), float(request.form["spawn_rate"])
            if request.form.get("run_time"):
                raise StallmarkError("The scenario determines the length of the run: leave the run time out.")
            self._change(users, spawn_rate)
        except ValueError:
            return _answer("Write whole users, and a number of users to start per second.", success=False)
        except StallmarkError as refused:
            return _answer(str(refused), success=False)
        return _answer("The load changes.")

    def _end(self) -> Response:
        self._stop()
        return _answer("The run ends, and its record is kept.")

    def _tasks(self) -> Response:
        """Return the share of each load among the users, and of each transaction in its deck."""
        per_class: dict[str, dict] = {}
        most = sum(load.most_users for load in self._loads)
        for load in self._loads:
            cards = sum(load.deck.values())
            tasks = {display_name(name): {"ratio": count / cards} for name, count in load.deck.items() if count}
            known = per_class.setdefault(load.name, {"ratio": 0.0, "tasks": tasks})
            known["ratio"] += load.most_users / most
        return jsonify({"per_class": per_class, "total": per_class})


def _answer(message: str, *, success: bool = True) -> Response:
    return jsonify({"success": success, "message": message, "host": None})


def _protect(answer: Response) -> Response:
    for name, value in _HEADERS.items():
        answer.headers[name] = value
    if request.path == "/" and answer.mimetype == "text/html":
        answer.set_data(answer.get_data(as_text=True).replace("</title>", f"</title>{_SHOW_REFUSALS}", 1))
    elif answer.mimetype == "text/csv":
        answer.set_data(_without_formulas(answer.get_data(as_text=True)))
    return answer


def _without_formulas(table: str) -> str:
    """Return a CSV without cells that a spreadsheet takes for formulas: names and errors come from the server."""
    out = io.StringIO()
    rows = csv.reader(io.StringIO(table))
    csv.writer(out).writerows(map(spreadsheet, row) for row in rows)
    return out.getvalue()
