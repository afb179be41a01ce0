"""The live page in a real browser while a run goes on, when it is stopped, and when its driver is killed."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.browser import browser
from support.remote import free_port
from support.tool import Command, Tool
from support.waiting import TIMEOUT_S

from stallmark.record.reader import Record

__all__ = ["browser"]

DASHBOARD = Path(__file__).parents[2] / "docs/grafana-dashboard.json"


class Watched:
    """A long run with its live page open in a browser, of which every fault and every request elsewhere is kept."""

    def __init__(self, tool: Tool, page):
        self.port = free_port()
        self.command: Command
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
def watched(shared, browser):
    page = browser.new_page()
    page.set_default_timeout(1000 * TIMEOUT_S)
    here = Watched(shared, page)
    yield here
    page.close()
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


def test_the_page_knows_of_ctrl_c(watched):
    watched.command.press_ctrl_c()
    watched.becomes("ended")
    assert "Ctrl-C" in watched.text("#said") and watched.text("#badge").lower() == "ended early"
    assert watched.command.wait() == 130


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
