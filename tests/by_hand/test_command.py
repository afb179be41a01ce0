"""The options of a run that somebody changes by hand: what is refused before anything starts."""

import json

import pytest
from support.remote import free_port
from support.tool import MINI

from stallmark.by_hand.command import OnLocustPage
from stallmark.errors import StallmarkError
from stallmark.experiment.work import load_specs, sessions
from stallmark.scenarios.read import read_scenario
from stallmark.web_access import PageAddress


def on_page(most: int | None = None, port: int | None = None) -> OnLocustPage:
    return OnLocustPage(PageAddress("127.0.0.1", port or free_port()), most)


@pytest.fixture
def scenario(tmp_path):
    def read(**changes):
        path = tmp_path / "mini.yaml"
        path.write_text(json.dumps({key: value for key, value in (MINI | changes).items() if value is not None}))
        return read_scenario(str(path), ())

    return read


def test_a_closed_loop_may_be_changed(scenario):
    on_page().refuse(scenario())


@pytest.mark.parametrize(
    ("name", "words"), [("ceiling", "searches"), ("power-memory-storage", "no users"), ("mail", "rate")]
)
def test_a_load_that_users_do_not_change_is_refused(name, words):
    with pytest.raises(StallmarkError, match=words):
        on_page().refuse(read_scenario(name, ()))


def test_open_arrivals_are_refused(scenario):
    with pytest.raises(StallmarkError, match="rate"):
        on_page().refuse(scenario(arrivals={"kind": "poisson", "rate": 10}, think_time=None))


@pytest.mark.parametrize(("most", "prepared"), [(None, 8), (3, 4), (40, 40)])
def test_a_run_is_prepared_for_the_most_users(scenario, most, prepared):
    four = scenario(users=4)
    [spec] = load_specs(four, four.variants[0], most_users=on_page(most).most_users)
    assert spec.most_users == prepared and spec.users == (4,)
    assert sessions(four, four.variants[0], 1, on_page(most).most_users)[0] == prepared
    [unchanged] = load_specs(four, four.variants[0])
    assert unchanged.most_users == 4 and sessions(four, four.variants[0], 1)[0] == 4
