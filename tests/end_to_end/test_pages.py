"""The live page and Locust's own page in a real browser, while a run goes on, is changed, stopped or killed."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.browser import browser
from support.remote import free_port
from support.tool import Command, Tool
from support.waiting import TIMEOUT_S, eventually

from stallmark.analysis.experiment import summarise
from stallmark.analysis.validity import ValidityKind
from stallmark.record.reader import Record

__all__ = ["browser"]

DASHBOARD = Path(__file__).parents[2] / "docs/grafana-dashboard.json"


class Watched:
    """A long run with its live page open in a browser, of which every fault and every request elsewhere is kept."""

    def __init__(self, tool: Tool, page):
        self.port = free_port()
        self.command, self.folder = tool.start_measuring("--web", str(self.port), users=[2, 3])
        self.page, self.faults = page, []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda one: None if self.url in one.url else self.faults.append(one.url))
        page.goto(self.command.text.partition("Live page: ")[2].split()[0])
        page.wait_for_selector("#charts .scatterlayer .trace", state="attached")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def becomes(self, state: str) -> None:
        self.page.wait_for_selector(f'body[data-state="{state}"]')


@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.set_default_timeout(1000 * TIMEOUT_S)
    yield page
    page.close()


@pytest.fixture
def watched(shared, page):
    here = Watched(shared, page)
    yield here
    assert here.faults == []
    shared.nothing_left()


def test_the_page_follows_the_run_and_stops_it_after_asking(watched):
    page = watched.page
    assert page.get_attribute("body", "data-state") == "running"
    assert "Run 1 of 1" in watched.text("#place") and "step 1 of 2, 2 users" in watched.text("#phase")
    page.wait_for_selector("#transactions tbody tr")
    assert float(watched.text("#runs tbody td:nth-child(3)").replace(",", "")) > 0
    assert page.locator("#charts .yaxislayer-above, #charts .xy").count() > 0
    with urlopen(f"{watched.url}metrics") as answer:
        exposed = set(re.findall(r"^(stallmark_\w+)[{ ]", answer.read().decode(), re.MULTILINE))
    asked = set(re.findall(r"stallmark_\w+", json.dumps(_expressions(json.loads(DASHBOARD.read_text())))))
    assert len(asked) > 8 and asked <= exposed

    page.click("#stop")
    page.click("#sure button:not(#stop-it)")
    page.wait_for_selector("#sure", state="hidden")
    assert watched.command.process.poll() is None
    page.click("#stop")
    page.click("#stop-it")
    watched.becomes("ended")
    assert "stopped from the live page" in watched.text("#said") and "--resume" in watched.text("#said")
    assert watched.command.wait() == 130
    assert "Stopped from the live page" in watched.command.text and watched.command.text.count("Live page:") == 1
    assert "live page" in (Record(watched.folder).incomplete_because or "") and not list(
        watched.folder.glob("*.arrows")
    )
    assert not page.is_visible("#stop")


def test_figures_of_a_killed_driver_are_not_shown_as_live(watched):
    figures = watched.text("#lately")
    watched.command.process.kill()
    watched.becomes("lost")
    assert watched.text("#badge").lower() == "not live" and watched.page.is_visible("#lost")
    assert watched.text("#lately") and figures
    assert float(watched.page.evaluate("getComputedStyle(document.querySelector('main')).opacity")) < 0.6


def test_an_experiment_is_shown_from_its_records_alone_and_left_alone(shared):
    port = free_port()
    command = shared.start("live", str(min(shared.runs.iterdir())), "--web", str(port))
    command.wait_for("Live page:")
    with urlopen(f"http://127.0.0.1:{port}/state") as answer:
        seen = json.load(answer)
    assert seen["state"] == "complete" and seen["final"] and seen["runs"][0]["drawn"] and seen["lines"] is None
    with urlopen(f"http://127.0.0.1:{port}/") as answer:
        assert 'id="stop"' not in answer.read().decode()
    command.press_ctrl_c()
    assert command.wait() == 0, command.text


def _expressions(dashboard: dict) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


# Locust's own page: users changed by hand, and the run stopped


class OnPage:
    """Locust's page, of which every fault, every request elsewhere and every refusal that it shows is kept."""

    def __init__(self, page, command: Command):
        command.wait_for("Locust's page: ")
        url = command.text.partition("Locust's page: ")[2].split()[0]
        self._page, self.faults, self.refusals = page, [], []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda asked: None if url.partition("?")[0] in asked.url else self.faults.append(asked.url))
        page.on("dialog", self._refused)
        page.goto(url)
        page.get_by_role("tab", name="Statistics").wait_for()

    def _refused(self, dialog) -> None:
        self.refusals.append(dialog.message)
        dialog.accept()

    def ask_for(self, users: int, spawn_rate: float) -> None:
        self._page.get_by_role("button", name="Edit").click()
        self._page.fill("input[name=userCount]", str(users))
        self._page.fill("input[name=spawnRate]", str(spawn_rate))
        self._page.get_by_role("button", name="Update").click()
        self._page.get_by_role("button", name="Update").wait_for(state="hidden")

    def becomes(self, words: str) -> None:
        self._page.locator("body", has_text=words).wait_for()

    def click(self, role: str, name: str) -> None:
        self._page.get_by_role(role, name=name, exact=True).click()

    def download(self, name: str) -> str:
        with self._page.expect_download() as downloaded:
            self._page.get_by_text(name).click()
        return downloaded.value.path().read_text()


def kinds_in(folder) -> list[set]:
    return [{finding.kind for finding in step.validity.invalid} for step in summarise([Record(folder)]).steps]


def last_second(folder) -> int:
    return max(Record(folder).table("transactions")["second"].to_pylist())


def users_of(record: Record) -> list[int]:
    return [step.users for step in record.manifest.steps]


def test_users_are_changed_and_the_run_is_stopped_on_the_page(shared, page):
    command, folder = shared.start_measuring("--locust-web", str(free_port()), "--most-users", "6", users=2)
    on_page = OnPage(page, command)
    on_page.becomes("transfer")
    on_page.ask_for(7, 1)
    eventually(lambda: on_page.refusals, "a refusal")
    on_page.ask_for(5, 2)
    eventually(lambda: users_of(Record(folder)) == [2, 5], "a second step")
    on_page.becomes("Users5")
    for tab in ("Charts", "Failures", "Exceptions", "Current Ratio", "Logs", "Download Data"):
        on_page.click("tab", tab)
    assert "transfer" in on_page.download("Download requests CSV")
    begun = Record(folder).manifest.steps[1]
    eventually(lambda: last_second(folder) > begun.measure_s + 3, "three measured seconds")
    on_page.click("button", "Stop")
    on_page.becomes("stopped")

    assert command.wait() == 0, command.text
    manifest = Record(folder).manifest
    assert manifest.status == "complete" and users_of(Record(folder)) == [2, 5]
    planned, by_hand = manifest.steps
    assert planned.end_s == by_hand.begin_s and by_hand.spawn_rate == 2 and by_hand.stopped_by_hand
    assert by_hand.measure_s - by_hand.begin_s == pytest.approx(1.5)
    assert len(on_page.refusals) == 1 and "--most-users 7" in on_page.refusals[0] and on_page.faults == []
    assert all(ValidityKind.BY_HAND in kinds for kinds in kinds_in(folder))
    assert "exploratory" in command.text
    shared.nothing_left()


def test_a_stop_before_anything_is_measured_leaves_the_run_incomplete(shared, page):
    command = shared.start("run", shared.scenario(warm_up="600s"), "--locust-web", str(free_port()))
    OnPage(page, command).click("button", "Stop")
    assert command.wait() == 4, command.text
    shared.nothing_left()
