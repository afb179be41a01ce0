"""A server that is lost before there is a record: what became of it is named first, with an exit code of its own."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.command_line import stallmark
from support.remote import Remote, remote

from stallmark.errors import CallFailed, ErrorClass, ServerLost, StallmarkError
from stallmark.experiment import run
from stallmark.experiment.runner import naming_loss
from stallmark.loaders import load

__all__ = ["remote"]

SMALL = (
    "{name: mine, workload: {name: bank, scale: {branches: 1}}, users: 1, measure: 1s, warm_up: 0s, reset: continue, "
    "variants: [{name: a}]}"
)
LOST = "The lock is gone: the server was restarted."
FAILED = CallFailed(ErrorClass.CONNECTION_LOST, "57P01", "terminating connection")


def lost() -> None:
    raise ServerLost(LOST)


@pytest.mark.parametrize("failed", [FAILED, StallmarkError("The build failed."), OSError(28, "No space left")])
def test_what_became_of_the_server_comes_before_what_failed(failed: Exception):
    with pytest.raises(ServerLost) as caught, naming_loss(lost):
        raise failed
    words = "No space left" if isinstance(failed, OSError) else str(failed).rstrip(".")
    assert str(caught.value) == f"{LOST} {words}."


def test_an_error_that_no_loss_explains_stays_what_it_is():
    with pytest.raises(CallFailed) as caught, naming_loss(lambda: None):
        raise FAILED
    assert caught.value is FAILED
    with pytest.raises(ServerLost, match=r"^The first one\.$"), naming_loss(lost):
        raise ServerLost("The first one.")


def restarts(remote: Remote) -> None:
    remote.stop()
    remote.start()


@pytest.fixture
def said(remote: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs a small scenario on a server at an address, and returns what it says, in which it was lost."""
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(SMALL)
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")

    def run_it() -> str:
        done = stallmark("run", "mine.yaml")
        assert done.exit_code == 4, done.output
        assert done.stderr.count("Error:") == 1 and "Traceback" not in done.output
        assert not list(tmp_path.glob("stallmark-runs/*/*/manifest.json"))
        return " ".join(done.stderr.split())

    return run_it


def test_a_server_that_starts_again_while_it_is_loaded(said, remote: Remote, monkeypatch):
    finish = load._finish

    def lose_it(engine: Any, *others: Any) -> bool:
        with engine.cursor() as cursor:
            restarts(remote)
            cursor.execute("SELECT 1")
        return finish(engine, *others)

    monkeypatch.setattr(load, "_finish", lose_it)
    text = said()
    assert "every run takes is gone" in text and "the server was restarted" in text
    assert text.index("the server was restarted") < text.index("Finishing the database failed")


def test_a_server_that_starts_again_while_the_first_run_is_prepared(said, remote: Remote, monkeypatch):
    def lose_it(engine: Any) -> None:
        with engine.cursor() as cursor:
            restarts(remote)
            cursor.execute("SELECT 1")

    monkeypatch.setattr(run, "drop_left_behind", lose_it)
    assert "the server was restarted" in said()


def test_a_server_that_becomes_read_only_before_the_first_run(said, remote: Remote, monkeypatch):
    writable = "-c default_transaction_read_only=off"
    elsewhere = remote.url().replace("/work", "/postgres")  # a session in the database would be of others
    with psycopg.connect(elsewhere, autocommit=True, options=writable) as boss:

        def set_it(to: str) -> None:
            boss.execute(f"ALTER SYSTEM {to}")
            boss.execute("SELECT pg_reload_conf()")

        def lose_it(engine: Any) -> None:
            set_it("SET default_transaction_read_only = on")
            while engine.query("SHOW default_transaction_read_only") == [("off",)]:
                pass

        monkeypatch.setattr(run, "drop_left_behind", lose_it)
        try:
            text = said()
        finally:
            set_it("RESET default_transaction_read_only")
    assert "has become read-only (default_transaction_read_only is on), so this run ends" in text
