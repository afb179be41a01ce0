"""RF1 and RF2 keep the warehouse consistent, in sequence, and what a kill leaves between them is seen and mended."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.schema import warehouse
from stallmark.transactions import checks
from stallmark.transactions.warehouse import WORKLOAD
from stallmark.transactions.warehouse.refresh import KEYS_AT_ONCE, Refresh, RefreshState


@pytest.fixture
def refresh(changed: Engine, factor) -> Refresh:
    return Refresh(changed, factor)


def counts(engine: Engine) -> tuple[int, int]:
    [orders], [lines] = (engine.query(f"SELECT COUNT(*) FROM warehouse.{table}") for table in ("orders", "lineitem"))
    return orders[0], lines[0]


def broken(engine: Engine, factor: float) -> list[str]:
    findings = checks.run(engine, WORKLOAD, {"factor": factor}, driven=True)
    return [finding.name for finding in findings if finding.holds is False]


def test_a_pair_replaces_as_many_orders(changed: Engine, refresh, factor):
    assert refresh.state() == RefreshState(0, True, True)
    orders, lines = counts(changed)
    new_orders, new_lines = warehouse.inserts(factor, 1)
    inserted = refresh.insert()
    assert (inserted.set, inserted.rows) == (1, new_orders.num_rows + new_lines.num_rows)
    assert counts(changed) == (orders + new_orders.num_rows, lines + new_lines.num_rows)
    assert refresh.state() == RefreshState(1, True, False)
    assert broken(changed, factor) == ["no refresh set is half done"]
    deleted = refresh.delete()
    assert deleted.set == 1
    assert counts(changed)[0] == orders
    assert deleted.rows == new_orders.num_rows + lines + new_lines.num_rows - counts(changed)[1]
    assert refresh.state() == RefreshState(1, True, True)
    assert broken(changed, factor) == []


def test_sets_come_one_after_the_other(changed: Engine, refresh, factor, monkeypatch):
    monkeypatch.setattr("stallmark.transactions.warehouse.refresh.KEYS_AT_ONCE", 4)
    for number in (1, 2, 3):
        assert refresh.pending() is None
        assert refresh.insert().set == number
        assert f"refresh set {number}" in refresh.pending()
        assert refresh.delete().set == number
    for number in (1, 2, 3):
        inserted = warehouse.inserts(factor, number)[0]["o_orderkey"].to_pylist()
        deleted = warehouse.deletes(factor, number).tolist()
        found = [key for (key,) in changed.query("SELECT o_orderkey FROM warehouse.orders")]
        assert set(inserted) <= set(found) and not set(deleted) & set(found)
    assert broken(changed, factor) == []


def test_a_set_is_deleted_in_several_statements_at_scale():
    assert len(warehouse.deletes(1, 1)) > KEYS_AT_ONCE


def test_what_a_kill_between_the_two_leaves_is_seen_and_mended(changed: Engine, refresh, factor):
    orders, _ = counts(changed)
    refresh.insert()
    after = Refresh(changed, factor)
    assert after.pending() == (
        "A run ended between the two functions of refresh set 1: its orders are in, and the old ones that go with it "
        "are still there."
    )
    with pytest.raises(StallmarkError, match=r"set 1: .* These are to be deleted before others are inserted\.$"):
        after.insert()
    repaired = after.repair()
    assert repaired and repaired.set == 1
    assert after.pending() is None and after.repair() is None
    assert counts(changed)[0] == orders
    assert broken(changed, factor) == []


class Killed(Exception):
    pass


class CutOff:
    """A server that ends before what was written is committed."""

    def __init__(self, writer):
        self._writer = writer

    def __getattr__(self, name):
        return getattr(self._writer, name)

    def commit(self):
        raise Killed


def test_what_is_cut_off_has_done_nothing(changed: Engine, refresh, monkeypatch):
    @contextmanager
    def cut_off() -> Iterator[CutOff]:
        with type(changed).transactional_writer(changed) as writer:
            yield CutOff(writer)

    before = counts(changed)
    with monkeypatch.context() as patched:
        patched.setattr(changed, "transactional_writer", cut_off)
        with pytest.raises(Killed):
            refresh.insert()
    assert counts(changed) == before
    assert refresh.state() == RefreshState(0, True, True)
    refresh.insert()
    between = counts(changed)
    with monkeypatch.context() as patched:
        patched.setattr(changed, "transactional_writer", cut_off)
        with pytest.raises(Killed):
            refresh.delete()
    assert counts(changed) == between
    assert refresh.state() == RefreshState(1, True, False)


def test_a_set_that_is_in_already_is_refused_by_the_server(changed: Engine, refresh):
    refresh.insert()
    refresh.delete()
    before = counts(changed)
    changed.execute("UPDATE warehouse.refresh SET refresh_set = 0")
    with pytest.raises(CallFailed) as failed:
        refresh.insert()
    assert failed.value.kind is ErrorClass.OTHER and failed.value.code in ("23505", "2627")
    assert counts(changed) == before
    assert refresh.state().set == 0


def test_deletes_come_after_inserts(refresh):
    with pytest.raises(StallmarkError, match=r"set 0 has deleted its orders already: RF1 of the next one comes first"):
        refresh.delete()


def test_exhausted_sets(changed: Engine, refresh, factor):
    most = warehouse.most_sets(factor)
    refresh.check_left(most)
    with pytest.raises(StallmarkError, match=f"needs {most + 1:,} refresh sets, and {most:,} are left"):
        refresh.check_left(most + 1)
    changed.execute(f"UPDATE warehouse.refresh SET refresh_set = {most}")
    refresh.check_left(0)
    for ask in (refresh.prepare, refresh.insert):
        with pytest.raises(StallmarkError, match="exhausted"):
            ask()
    assert refresh.state() == RefreshState(most, True, True)


def test_what_is_prepared_is_made_once(refresh, monkeypatch):
    made = []
    inserts = warehouse.inserts
    monkeypatch.setattr(warehouse, "inserts", lambda *given: made.append(given) or inserts(*given))
    refresh.prepare()
    refresh.prepare()
    assert refresh.insert().set == 1
    assert [number for _, number in made] == [1]
    refresh.delete()
    assert refresh.insert().set == 2
    assert [number for _, number in made] == [1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        "DELETE FROM warehouse.refresh",
        "INSERT INTO warehouse.refresh SELECT 7, inserted, deleted FROM warehouse.refresh",
        "UPDATE warehouse.refresh SET inserted = {false}",
    ],
)
def test_a_row_that_says_nothing(changed: Engine, refresh, wrong):
    changed.execute(wrong.format(false="FALSE" if changed.dialect == "postgresql" else "0"))
    with pytest.raises(StallmarkError, match=r"does not identify the last refresh set"):
        refresh.pending()


def test_a_server_that_fails(database: EmbeddedEngine, factor):
    with pytest.raises(CallFailed, match="refresh"):
        Refresh(database, factor).pending()  # an empty database
