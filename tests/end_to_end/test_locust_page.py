"""Locust's own page in a real browser: users changed by hand and the run stopped, on this machine and on others."""

import pytest
from support.browser import browser
from support.remote import free_port
from support.tool import Command
from support.waiting import TIMEOUT_S, eventually

from stallmark.analysis.experiment import summarise
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.record.reader import Record

__all__ = ["browser"]


class OnPage:
    """Locust's page, of which every fault, every request elsewhere and every refusal that it shows is kept."""

    def __init__(self, page, command: Command):
        command.wait_for("Locust's page: ")
        url = command.text.partition("Locust's page: ")[2].split()[0]
        self._page, self.faults, self.refusals = page, [], []
        page.set_default_timeout(1000 * TIMEOUT_S)
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


@pytest.fixture
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


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


def test_a_run_that_nobody_changes_is_as_any_other(shared, page):
    command = shared.start("run", shared.scenario(measure="4s"), "--locust-web", str(free_port()))
    OnPage(page, command)
    assert command.wait() == 0 and "exploratory" not in command.text
    [folder] = (path for path in max(shared.runs.iterdir()).iterdir() if path.is_dir())
    assert not any(step.is_by_hand for step in Record(folder).manifest.steps)
    assert all(ValidityKind.BY_HAND not in kinds for kinds in kinds_in(folder))
    shared.nothing_left()


def test_a_stop_before_anything_is_measured_leaves_the_run_incomplete(shared, page):
    command = shared.start("run", shared.scenario(warm_up="600s"), "--locust-web", str(free_port()))
    OnPage(page, command).click("button", "Stop")
    assert command.wait() == 4, command.text
    shared.nothing_left()
