"""The server of the live page: whom it answers, and whose word it takes to stop."""

import json
import logging
import socket
from urllib.error import URLError
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import pytest
from support import malformed
from support.remote import free_port
from werkzeug.test import Client

from stallmark.errors import StallmarkError
from stallmark.live.server import Ending, LivePage, make_app
from stallmark.web_access import Access, PageAddress

pytestmark = pytest.mark.thorough

HERE = PageAddress("127.0.0.1", 8089)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8089", "127.0.0.1", 8089),
        ("0.0.0.0:80", "0.0.0.0", 80),
        ("[::1]:1", "::1", 1),
        ("db.example:9", "db.example", 9),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text, host, port):
    assert PageAddress.parse(text) == PageAddress(host, port)


@pytest.mark.parametrize("text", ["", "x", "0", "65536", "localhost", "localhost:", "1:2:x"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):
        PageAddress.parse(text)


@pytest.mark.parametrize(
    ("bound", "asked", "known"),
    [
        ("127.0.0.1", "localhost:8089", True),
        ("127.0.0.1", "localhost:9000", True),  # through a tunnel
        ("127.0.0.1", "[::1]:8089", True),
        ("127.0.0.1", "rebound.example:8089", False),
        ("127.0.0.1", "192.0.2.7:8089", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[x", False),
        ("0.0.0.0", "192.0.2.7:8089", True),
        ("0.0.0.0", socket.gethostname(), True),
        ("0.0.0.0", "rebound.example", False),
        ("db.example", "db.example:8089", True),
    ],
)
def test_a_name_that_is_not_of_this_machine_is_not_answered(bound, asked, known):
    assert Access(PageAddress(bound, 8089)).knows_host(asked) is known


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, True),  # a program
        ({"Origin": "http://localhost:8089", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, True),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, True),  # typed
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, True),  # a link
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, False),  # an image, a script
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, False),  # another port of this machine
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://localhost:8090"}, False),
        ({"Origin": "http://[x"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
    ],
)
def test_the_page_of_another_site_cannot_ask(headers, own):
    assert Access(HERE).is_own(headers, "localhost:8089") is own


class Stub:
    """A page that is not served, asked through WSGI."""

    def __init__(self, view, host: str, stoppable: bool = True):
        self.stops: list[bool] = []
        access = Access(PageAddress(host, 8089))
        stop = (lambda: self.stops.append(True)) if stoppable else None
        self.token = access.token
        self.client = Client(make_app(view, access, Ending(), stop), use_cookies=False)

    def get(self, path: str, host: str = "localhost:8089", **headers: str):
        return self.client.get(path, headers={"Host": host} | {k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post("/stop", headers={"Host": "localhost:8089"} | named).status_code


def test_the_page_its_figures_and_its_metrics_are_there(view):
    here = Stub(view(), "127.0.0.1")
    page = here.get("/")
    assert page.status_code == 200 and "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert not [name for name, _ in page.headers if name.startswith("Access-Control")]
    assert here.get("/state").json["present"] == 3
    assert here.get("/lines/1").json["width"] == 1 and here.get("/lines/4").status_code == 404
    assert "stallmark_transactions_total{" in here.get("/metrics").text
    assert len(here.get("/plotly.js").data) > 1_000_000 and here.get("/report.css").status_code == 200
    for path in ("/manifest.js", "/live.py", "/../view.js", "/x.css"):
        assert here.get(path).status_code == 404
    assert here.get("/state", host="rebound.example:8089").status_code == 403


def test_stopping_needs_the_token_of_the_printed_address_and_no_other_site_can_ask(view):
    here = Stub(view(), "127.0.0.1")
    assert here.token not in here.get("/").text  # of whom else is logged in to this machine
    cookie = here.get(f"/?token={here.token}").headers["Set-Cookie"].partition(";")[0]
    assert f'content="{here.token}"' in here.get("/", Cookie=cookie).text
    own = "http://localhost:8089"
    assert here.post() == here.post(Origin=own) == here.post(Origin=own, X_Stallmark_Token="guess") == 403
    assert here.post(Origin=own, Cookie=cookie) == 403  # which a browser sends by itself
    assert here.post(Origin="http://evil.example", Cookie=cookie, X_Stallmark_Token=here.token) == 403
    assert here.get("/stop").status_code == 405 and here.stops == []
    assert here.get("/state", Origin="http://evil.example").status_code == 403
    assert here.post(Origin=own, X_Stallmark_Token=here.token) == 202 and here.stops == [True]
    reader = Stub(view(), "127.0.0.1", stoppable=False)
    assert reader.post(X_Stallmark_Token=reader.token) == 403
    assert reader.token not in reader.get("/", Cookie=f"stallmark-8089={reader.token}").text


def test_another_address_needs_the_token_which_goes_into_a_cookie(view):
    here, host = Stub(view(), "0.0.0.0"), "192.0.2.7:8089"
    assert {here.get(path, host).status_code for path in ("/", "/state", "/metrics", "/live.js", "/?token=guess")} == {
        401
    }
    assert here.get("/metrics", host, Authorization=f"Bearer {here.token}").status_code == 200
    assert here.get("/metrics", host, Authorization="Bearer guess").status_code == 401
    entered = here.get(f"/?token={here.token}", host)
    cookie = entered.headers["Set-Cookie"]
    assert entered.status_code == 302 and entered.headers["Location"] == "/"
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and here.token in cookie
    assert here.get("/state", host, Cookie=cookie.partition(";")[0]).status_code == 200
    assert here.get("/state", host, Cookie="stallmark-8089=guess").status_code == 401


def test_the_end_is_told_at_once_to_a_page_that_only_listens(view):
    port = free_port()
    page = LivePage(view(), PageAddress("127.0.0.1", port), stop=lambda: None)
    assert page.start() == f"http://127.0.0.1:{port}/?token={page.access.token}"
    with urlopen(f"http://127.0.0.1:{port}/ended") as events:
        assert events.readline() == b":\n"
        page.close(False, "the server was gone")
        told = next(line for line in events if line.startswith(b"data: "))
    final = json.loads(told.removeprefix(b"data: "))
    assert final["state"] == "ended" and "the server was gone" in final["said"]
    assert {number: len(lines["tps"]) for number, lines in final["ended"].items()} == {"1": 35, "2": 35, "3": 28}
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{port}/")


def test_the_token_is_in_no_log_and_a_port_that_is_taken_is_refused(view, caplog, capfd):
    port = free_port()
    taken = pytest.raises(StallmarkError, match=f"Port {port} is not free for the live page")
    with socket.create_server(("127.0.0.1", port)), taken:
        LivePage(view(), PageAddress("127.0.0.1", port))
    for host in ("192.0.2.1", "nowhere.invalid"):
        with pytest.raises(StallmarkError, match=f"{host} is not an address of this machine, for the live page"):
            LivePage(view(), PageAddress(host, port))
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.DEBUG):
        page = LivePage(view(), PageAddress("0.0.0.0", port))
        url = page.start()
        assert page.access.token in url and page.access.token not in repr(page.access)
        browser = build_opener(HTTPCookieProcessor())
        with browser.open(f"http://127.0.0.1:{port}/state?token={page.access.token}") as answer:
            assert answer.status == 200
        page.close(True, "")
    assert page.access.token not in caplog.text + "".join(capfd.readouterr())


def test_names_in_answers_do_not_act(view, monkeypatch):
    monkeypatch.setattr("stallmark.live.server.state", lambda seen: {"said": "a\x1b\u202e<b>ü"})
    monkeypatch.setattr("stallmark.live.server.metrics.exposition", lambda seen: "a\x1b\u202e ü\n".encode())
    here = Stub(view(), "127.0.0.1")
    assert here.get("/state").json == {"said": "a\x1b�<b>ü"}
    assert here.get("/metrics").text == "a␛� ü\n"


def test_requests_that_are_none_neither_end_nor_stop_it_and_say_nothing(view, capfd):
    port, stops = free_port(), []
    page = LivePage(view(), PageAddress("127.0.0.1", port), stop=lambda: stops.append(True))
    page.start()
    malformed.ask(port, malformed.requests(seed=5, count=60, host=f"127.0.0.1:{port}"))
    with urlopen(f"http://127.0.0.1:{port}/state") as answer:
        assert answer.status == 200
    page.close(True, "")
    assert stops == [] and "".join(capfd.readouterr()) == ""
