"""PostgreSQL servers that are not there, URLs that are none, and the password, which nothing says."""

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from support.remote import free_port

from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import CallFailed, StallmarkError

SECRET = "pa55-w0rd"


def everything_said(action: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((StallmarkError, CallFailed)) as caught:
        action()
    said = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert len(str(caught.value).splitlines()) == 1
    return said.replace(repr(action), "")


def no_server_url() -> str:
    return f"postgresql://me:{SECRET}@127.0.0.1:1/db"


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.connect(),
        lambda engine: engine.session(1.0),
        lambda engine: engine.bulk_writer().__enter__(),
        lambda engine: engine.identity(),
    ],
    ids=["connect", "session", "bulk", "identity"],
)
def test_a_closed_port_is_named_and_the_password_is_not(ask, caplog):
    engine = PostgresEngine(no_server_url())
    said = everything_said(lambda: ask(engine), caplog)
    assert "127.0.0.1" in said and "refused" in said.lower()
    assert SECRET not in said


def test_a_wrong_password_is_not_repeated(make_server, caplog):
    server = make_server(port=free_port())
    server.start()
    engine = PostgresEngine(f"postgresql://stallmark:{SECRET}@127.0.0.1:{server.port}/postgres")
    for ask in (engine.connect, lambda: engine.session(1.0)):
        said = everything_said(ask, caplog)
        assert "password authentication failed" in said and SECRET not in said


def test_an_engine_shows_where_it_is_and_no_password():
    engine = PostgresEngine(no_server_url())
    assert engine.where == "127.0.0.1:1/db"
    assert SECRET not in repr(engine) + str(engine)
    assert SECRET in str(engine.spec())  # the one place it may be: a pipe to a process of ours


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:{SECRET}/more@host/db",
        f"postgresql://me:{SECRET} more@host/db",
        f"postgresql://me:{SECRET}@host:{SECRET}/db",
        f"postgresql://me@host/db?pass={SECRET}",
        "not a url",
    ],
)
def test_an_unreadable_url_is_refused_without_repeating_it(url, caplog):
    said = everything_said(lambda: PostgresEngine(url), caplog)
    assert "postgresql://user@host:5432/database" in said
    assert SECRET not in said


def test_the_url_of_sqlalchemy_is_understood():
    engine = PostgresEngine("postgresql+psycopg://me@host:5433,other:5434/db")
    assert engine.where == "host,other:5433,5434/db"
