"""Checks of the page of Locust on the conductor, run by test_page.py in a process of their own: Locust patches it."""

from stallmark.driver import locust_conductor as conductor  # isort: skip  (patches the process: before everything else)

import csv
import io
import time
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from locust.env import Environment

from stallmark.by_hand.page import Page
from stallmark.driver.load import LocustPage, Timeline, consecutive_steps
from stallmark.driver.locust_statistics import LocustStatistics
from stallmark.driver.messages import ChangedByHand, StoppedByHand
from stallmark.driver.rows import ErrorRow, Rows, TransactionRow
from stallmark.errors import ErrorClass, StallmarkError
from stallmark.record import histogram as hdr
from support.driving import load_spec

TOKEN = "the token of this run"
PORT = 8089


def transactions(second: int, latencies_ms: list[float], failed: int = 0, name: str = "trade_order") -> TransactionRow:
    latencies_us = np.array([1000 * latency for latency in latencies_ms], np.int64)
    times = hdr.encode(latencies_us)
    total = int(latencies_us.sum())
    return TransactionRow(second, "shop", name, len(latencies_ms) - 1, 1, failed, 0, total, total, times, times)


@pytest.fixture
def environment():
    environment = Environment()
    environment.create_local_runner().state = "running"
    return environment


@pytest.fixture
def asked() -> list:
    return []


@pytest.fixture
def page(environment, asked):
    def change(users: int, spawn_rate: float) -> None:
        if users > 30:
            raise StallmarkError("At most 30.")
        asked.append((users, spawn_rate))

    def stop() -> None:
        asked.append("stop")

    return Page(environment, LocustPage("127.0.0.1", PORT, TOKEN), [load_spec(users=(4,))], change, stop)


@pytest.fixture
def client(page):
    client = page._web.app.test_client()
    client.environ_base["HTTP_HOST"] = f"127.0.0.1:{PORT}"
    return client


@pytest.fixture
def trusted(client):
    answer = client.get(f"/?token={TOKEN}")
    assert answer.status_code == 302 and TOKEN not in answer.headers["Location"]
    return client


def test_the_statistics_are_those_of_all_reports(environment):
    statistics = LocustStatistics(environment, start_s=1000.0)
    statistics.add(Rows([transactions(1, [1, 2, 3]), transactions(1, [2], failed=2), transactions(2, [40.0])]))
    entry, total = environment.stats.get("Trade-Order", "shop"), environment.stats.total
    for stats in (entry, total):
        assert (stats.num_requests, stats.num_failures, stats.num_none_requests) == (7, 2, 2)
        assert stats.avg_response_time == pytest.approx((1 + 2 + 3 + 2 + 40) / 5, rel=0.01)
        assert (stats.min_response_time, stats.max_response_time) == (pytest.approx(1), pytest.approx(40))
        assert stats.get_response_time_percentile(0.5) == pytest.approx(2)
        assert dict(stats.num_reqs_per_sec) == {1001: 6, 1002: 1} and dict(stats.num_fail_per_sec) == {1001: 2}
        assert stats.last_request_timestamp == 1003


def test_a_reset_begins_anew(environment):
    statistics = LocustStatistics(environment, start_s=time.time() - 500)
    statistics.add(Rows([transactions(1, [1, 2, 3])]))
    environment.stats.reset_all()
    statistics.add(Rows([transactions(510, [1, 1])]))
    assert environment.stats.total.num_requests == 2
    assert environment.stats.total.total_rps == pytest.approx(2 / 11, rel=0.3)


def test_memory_is_bounded_however_long_a_run_is(environment):
    statistics = LocustStatistics(environment, start_s=0.0)
    for second in range(500):
        statistics.add(Rows([transactions(second, [1.0])]))
    assert len(environment.stats.total.num_reqs_per_sec) < 100
    assert environment.stats.total.num_requests == 500


def test_failures_are_what_was_given_up_and_exceptions_all_failed_attempts(environment):
    error = ErrorRow(3, "shop", "trade_order", ErrorClass.DEADLOCK, "1205", attempts=5, given_up=0, message="deadlock")
    LocustStatistics(environment, 0.0).add(Rows(errors=[error]))
    assert not environment.stats.errors
    LocustStatistics(environment, 0.0).add(Rows(errors=[msgspec.structs.replace(error, given_up=2)]))
    [failure] = environment.stats.errors.values()
    [exception] = environment.runner.exceptions.values()
    assert failure.occurrences == 2 and failure.error == "deadlock (1205)" and exception["count"] == 10


def test_only_who_has_the_token_changes_the_load(client, asked):
    for path in ("/swarm", "/stop", "/stats/reset"):
        assert client.post(path, data={"user_count": "5", "spawn_rate": "1"}).status_code == 403
    assert asked == [] and client.get("/stats/requests").status_code == 200


def test_a_page_of_another_site_neither_reads_nor_changes(trusted, asked):
    foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert trusted.get("/stats/requests", headers=foreign).status_code == 403
    assert trusted.post("/stop", headers=foreign).status_code == 403
    assert trusted.get("/stats/requests", headers={"Host": "rebound.example"}).status_code == 403
    assert "Access-Control-Allow-Origin" not in trusted.get("/stats/requests").headers and asked == []


def test_on_another_address_all_of_it_needs_the_token(environment):
    page = Page(environment, LocustPage("0.0.0.0", PORT, TOKEN), [load_spec(users=(4,))], print, print)
    client = page._web.app.test_client()
    assert client.get("/", headers={"Host": "127.0.0.1"}).status_code == 401
    assert client.get("/", headers={"Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_users_and_their_rate_are_asked_for(trusted, asked):
    answer = trusted.post("/swarm", data={"user_count": "12", "spawn_rate": "2.5"}).json
    assert answer["success"] and asked == [(12, 2.5)]
    assert trusted.post("/stop").json["success"] and asked[1:] == ["stop"]


@pytest.mark.parametrize(
    "form",
    [
        {"user_count": "31", "spawn_rate": "1"},
        {"user_count": "many", "spawn_rate": "1"},
        {"user_count": "3", "spawn_rate": "quickly"},
        {"user_count": "3", "spawn_rate": "1", "run_time": "5m"},
    ],
)
def test_what_cannot_be_is_refused(trusted, asked, form):
    answer = trusted.post("/swarm", data=form).json
    assert not answer["success"] and answer["message"] and asked == []


def test_a_form_without_users_is_no_fault(trusted, asked):
    assert trusted.post("/swarm", data={}).status_code == 400 and asked == []


def test_what_is_offered_works(trusted, page):
    page.count(Rows([transactions(1, [1.0, 2.0], failed=1, name="=cmd|calc")]))
    page.count(Rows(errors=[ErrorRow(1, "shop", "order", ErrorClass.OTHER, "1", 1, 1, message="=HYPERLINK(1)\x1b[2J")]))
    page_text = trusted.get("/").text
    assert "window.alert" in page_text and '"hide_common_options"' in page_text.replace("&#34;", '"')
    for path in ("requests", "failures", "requests_full_history"):
        table = trusted.get(f"/stats/{path}/csv")
        if table.status_code == 200:
            cells = [cell for row in csv.reader(io.StringIO(table.text)) for cell in row]
            assert cells and not [cell for cell in cells if cell.startswith("=")] and "\x1b" not in table.text
    assert trusted.get("/exceptions/csv").status_code == 200 and trusted.get("/stats/report").status_code == 200
    assert trusted.get("/logs").json["master"] == []
    assert trusted.get("/tasks").json["per_class"]["bank"]["tasks"] == {"transfer": {"ratio": 1.0}}
    assert trusted.post("/user", json={"user_class_name": "Load0"}).status_code == 404
    assert trusted.post("/stats/reset").status_code == 200


# The users that are asked for, and the step that they become.

LOADS = [load_spec(users=(30,), name="bank"), load_spec(users=(10,), name="mail")]


@given(users=some.integers(0, 40), weights=some.tuples(some.integers(1, 40), some.integers(0, 40)))
def test_users_are_shared_out_as_planned(users, weights):
    loads = [msgspec.structs.replace(load, at_most=10_000) for load in LOADS]
    shares = conductor.share_out(users, loads, weights)
    assert sum(shares) == users
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - users * weight / sum(weights)) < 1


@given(users=some.integers(0, 100), weights=some.tuples(some.integers(1, 40), some.integers(0, 40)))
def test_no_load_gets_more_users_than_it_is_prepared_for(users, weights):
    try:
        shares = conductor.share_out(users, LOADS, weights)
    except StallmarkError as refused:
        most = int(str(refused).split("at most ")[1].split()[0])
        assert most < users and conductor.share_out(most, LOADS, weights)
    else:
        assert all(share <= load.most_users for share, load in zip(shares, LOADS, strict=True))


@pytest.fixture
def running(monkeypatch):
    """A conductor in the 20th second of a step with 30 and 10 users, and what it sends."""
    here = conductor.Conductor.__new__(conductor.Conductor)
    here._order = SimpleNamespace(loads=LOADS)
    here._classes = [conductor.user_class(place) for place in range(2)]
    here._shape, here._weights, sent = conductor.PlannedShape(), [], []
    here._runner = SimpleNamespace(user_classes_count={"Load0": 30, "Load1": 10})
    here._send = sent.append
    timeline = Timeline(consecutive_steps([("40 users", 40)], ramp_s=0, warm_up_s=0, measure_s=60))
    users = [dict(zip(here._classes, (30, 10), strict=True))]
    for name, value in {"timeline": timeline, "users": users, "rates": {}, "start_ns": 0}.items():
        monkeypatch.setattr(conductor.PlannedShape, name, value, raising=False)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 20_000_000_000)
    return here, sent


def test_a_change_is_sent_with_the_time_that_the_spawn_rate_needs(running):
    here, sent = running
    here._change_by_hand(20, 2.0)
    here._stop_by_hand()
    assert sent == [ChangedByHand([15, 5], 2.0, 10.0), StoppedByHand()]


def test_proportions_outlive_a_change_to_few_users(running):
    here, sent = running
    here._change_by_hand(1, 1.0)
    here._change_by_hand(40, 1.0)
    assert [change.users for change in sent] == [[1, 0], [30, 10]]


@pytest.mark.parametrize(("users", "rate"), [(0, 1.0), (-5, 1.0), (5, 0.0), (5, -1.0), (5, float("inf")), (41, 1.0)])
def test_a_change_that_cannot_be_is_refused(running, users, rate):
    here, sent = running
    with pytest.raises(StallmarkError):
        here._change_by_hand(users, rate)
    assert sent == []


def test_after_the_last_step_nothing_is_changed(running, monkeypatch):
    here, sent = running
    monkeypatch.setattr(time, "monotonic_ns", lambda: 61_000_000_000)
    with pytest.raises(StallmarkError):
        here._change_by_hand(5, 1.0)
    assert sent == []


def test_the_shape_starts_users_at_the_rate_that_was_asked_for(running, monkeypatch):
    here, _ = running
    shape = conductor.PlannedShape
    monkeypatch.setattr(shape, "timeline", shape.timeline.changed_at(20.0, 20, 10.0))
    monkeypatch.setattr(shape, "users", [*shape.users, dict(zip(here._classes, (15, 5), strict=True))])
    monkeypatch.setattr(shape, "rates", {1: 2.0})
    assert here._shape.tick() == (20, 2.0, shape.users[1])
