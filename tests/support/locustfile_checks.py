"""Checks of the workers of a user's locustfile, in the process that runs conductor_checks.py: Locust patches it."""

from stallmark.driver.locust import _USERS, _Workers  # isort: skip  (patches the process: before everything else)

from types import SimpleNamespace

import pytest
from locust.env import Environment
from locust.rpc import Message


@pytest.fixture
def told() -> dict[str, int]:
    """The number of others with users that each worker was last told."""
    return {}


@pytest.fixture
def workers(told: dict[str, int]) -> _Workers:
    """The workers a, b and c of a master."""
    runner = SimpleNamespace(
        clients=dict.fromkeys("abc"),
        register_message=lambda *_: None,
        send_message=lambda _, data, client_id: told.update({client_id: data["elsewhere"]}),
    )
    return _Workers(Environment(), runner)


@pytest.mark.parametrize(
    ("with_users", "elsewhere"), [("", [0, 0, 0]), ("a", [0, 1, 1]), ("ab", [1, 1, 2]), ("abc", [2, 2, 2])]
)
def test_a_worker_learns_how_many_others_have_users(workers, told, with_users: str, elsewhere: list[int]):
    for has_users in (lambda worker: True, lambda worker: worker in with_users):  # all begin, and some stop
        for worker in "abc":
            workers._note_users(Message(_USERS, {"name": "Buyers", "has_users": has_users(worker)}, worker))
    assert [told[worker] for worker in "abc"] == elsewhere


def test_users_of_another_class_are_not_counted(workers, told):
    workers._note_users(Message(_USERS, {"name": "Buyers", "has_users": True}, "a"))
    workers._note_users(Message(_USERS, {"name": "Sellers", "has_users": False}, "b"))
    assert told == {"a": 0, "b": 0, "c": 0}
