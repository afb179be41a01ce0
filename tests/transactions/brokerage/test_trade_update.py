"""Trade-Update on every engine: what each branch changes and takes back, what it tells, and many at once."""

import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from support.answers import values
from support.undone import undone

from stallmark.engines.base import Engine, Isolation, Session
from stallmark.errors import CallFailed
from stallmark.transactions.brokerage.context import TRADES, Context, FrameCall
from stallmark.transactions.brokerage.corrections import CASH_NAME, CASH_TYPE, EXECUTOR, TradeUpdate
from stallmark.transactions.brokerage.read_only import BY_ACCOUNT, BY_ID, BY_SYMBOL
from stallmark.transactions.workload import Outcome

OPENING = "2005-01-03T09:00:00.000"
TRADES_SAID = "SELECT t_id, t_exec_name FROM brokerage.trade ORDER BY t_id"
TYPES_SAID = "SELECT se_t_id, se_cash_type FROM brokerage.settlement ORDER BY se_t_id"
NAMES_SAID = "SELECT ct_t_id, ct_name FROM brokerage.cash_transaction ORDER BY ct_t_id"
SAID = {EXECUTOR: TRADES_SAID, CASH_TYPE: TYPES_SAID, CASH_NAME: NAMES_SAID}
LOOKUPS = {EXECUTOR: BY_ID, CASH_TYPE: BY_ACCOUNT, CASH_NAME: BY_SYMBOL}
OTHER_WORDS = {
    EXECUTOR: [(" ", " X ")],
    CASH_TYPE: [("Cash Account", "Cash"), ("Margin", "Margin Account")],
    CASH_NAME: [(" shares of ", " shares in ")],
}

NAMES = slice(8, 10)  # of type and security, which Trade-Lookup does not tell


def without_names(row: tuple) -> tuple:
    return row[: NAMES.start] + row[NAMES.stop :]


def busiest(engine: Engine, by: str) -> int | str:
    [(one,)] = engine.query(
        f"SELECT {by} FROM brokerage.trade WHERE t_is_cash = 'true' GROUP BY {by} ORDER BY COUNT(*) DESC, {by} "
        "OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    return one


@pytest.fixture(params=[EXECUTOR, CASH_TYPE, CASH_NAME])
def asked(request: pytest.FixtureRequest, engine: Engine) -> FrameCall:
    """One that finds trades, of each branch."""
    if request.param == EXECUTOR:
        trades = engine.query("SELECT t_id FROM brokerage.trade WHERE t_id < 200000000000050 ORDER BY t_id")
        return FrameCall.by_id(EXECUTOR, [trade for (trade,) in trades[:TRADES]])
    by = {CASH_TYPE: "t_ca_id", CASH_NAME: "t_s_symb"}[request.param]
    return FrameCall(request.param, (busiest(engine, by), OPENING))


def in_other_words(frame: str, text: str) -> str:
    for loaded, corrected in OTHER_WORDS[frame]:
        if corrected in text and (frame != CASH_TYPE or text == corrected):
            return text.replace(corrected, loaded)
        if loaded in text and (frame != CASH_TYPE or text == loaded):
            return text.replace(loaded, corrected)
    raise AssertionError(text)


def test_what_is_changed_and_taken_back(engine: Engine, session: Session, context: Context, asked: FrameCall) -> None:
    update = TradeUpdate(context)
    chosen = {row[0] for row in session.call(LOOKUPS[asked.frame], asked.parameters)}
    before = {frame: dict(engine.query(said)) for frame, said in SAID.items()}
    assert update.execute(session, asked) is Outcome.COMMITTED
    after = {frame: dict(engine.query(said)) for frame, said in SAID.items()}
    changed = {
        trade: in_other_words(asked.frame, text) for trade, text in before[asked.frame].items() if trade in chosen
    }
    assert changed and after == before | {asked.frame: before[asked.frame] | changed}
    assert update.execute(session, asked) is Outcome.COMMITTED
    assert {frame: dict(engine.query(said)) for frame, said in SAID.items()} == before


def test_it_tells_what_is_afterwards(session: Session, asked: FrameCall) -> None:
    with session.transaction(Isolation.REPEATABLE_READ):
        told = session.call(asked.frame, asked.parameters)
        looked_up = session.call(LOOKUPS[asked.frame], asked.parameters)
        session.roll_back()
    known = [without_names(row) if asked.frame == CASH_NAME else row for row in told]
    assert known and values(known) == values(looked_up)
    assert values(known) != values(session.call(LOOKUPS[asked.frame], asked.parameters))


def test_it_tells_of_what_the_words_for_a_payment_are_made(engine: Engine, session: Session, context: Context) -> None:
    with session.transaction(Isolation.REPEATABLE_READ):
        told = session.call(CASH_NAME, (busiest(engine, "t_s_symb"), OPENING))
        session.roll_back()
    paid = [(row[4], *row[NAMES], row[-4]) for row in told if row[-4] is not None]
    assert paid
    for quantity, kind, security, words in paid:
        assert words == f"{kind} {quantity} shares in {security}"


def test_margin_is_settled_in_other_words_too(engine: Engine, session: Session, context: Context) -> None:
    [(trade, account)] = engine.query(
        "SELECT t_id, t_ca_id FROM brokerage.trade WHERE t_id = "
        "(SELECT MIN(se_t_id) FROM brokerage.settlement WHERE se_cash_type = 'Margin')"
    )
    said = f"SELECT se_cash_type FROM brokerage.settlement WHERE se_t_id = {trade}"
    for words in ("Margin Account", "Margin"):
        TradeUpdate(context).execute(session, FrameCall(CASH_TYPE, (account, OPENING)))
        assert engine.query(said) == [(words,)]


@pytest.mark.parametrize(("frame", "by"), [(CASH_TYPE, "t_ca_id"), (CASH_NAME, "t_s_symb")])
def test_no_more_than_twenty(engine: Engine, session: Session, frame: str, by: str) -> None:
    whose = busiest(engine, by)
    said = f"said_{frame}"
    session.prepare(said, SAID[frame])
    with undone(session, f"UPDATE brokerage.trade SET {by} = '{whose}' WHERE t_id < 200000000000060"):
        before = session.call(said, ())
        rows = session.call(frame, (whose, OPENING))
        after = session.call(said, ())
    changed = {one[0] for one, other in zip(before, after, strict=True) if one != other}
    assert len(rows) == TRADES
    paid = {row[0] for row in rows if row[-4] is not None}
    assert changed == (paid if frame == CASH_NAME else {row[0] for row in rows})


def test_where_trades_are_missing_nothing_is_changed(engine: Engine, session: Session, context: Context) -> None:
    before = engine.query(TRADES_SAID)
    with pytest.raises(CallFailed, match="1 of 2 trades are not there: run `stallmark check`"):
        TradeUpdate(context).execute(session, FrameCall.by_id(EXECUTOR, [before[0][0], 5]))
    assert engine.query(TRADES_SAID) == before


def test_many_at_once_lose_nothing(
    engine: Engine, open_session: Callable[[], Session], context: Context, asked: FrameCall
) -> None:
    """Some are turned away, and then try again; each that is committed has changed what the one before it left. They
    do not wait for each other in a circle."""
    users, times = 3, 4
    before = engine.query(SAID[asked.frame])
    failures: list[CallFailed] = []

    def work(session: Session) -> None:
        update, done = TradeUpdate(context), 0
        while done < times:
            try:
                update.execute(session, asked)
                done += 1
            except CallFailed as failure:
                failures.append(failure)

    sessions = [open_session() for _ in range(users)]
    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.query(SAID[asked.frame]) == before  # an even number of changes takes all back
    assert all("serialize" in failure.message for failure in failures), failures


def test_all_that_is_drawn_is_executed(
    session: Session, context: Context, rng: random.Random, untouched: None, broken: Callable[[], list]
) -> None:
    update = TradeUpdate(context)
    drawn = [update.inputs(rng) for _ in range(30)]
    assert {update.execute(session, each) for each in drawn} == {Outcome.COMMITTED}
    assert broken() == []
    assert {update.execute(session, each) for each in drawn} == {Outcome.COMMITTED}


def test_shares_of_the_branches(context: Context, rng: random.Random) -> None:
    update, draws = TradeUpdate(context), 10_000
    frames = Counter(update.inputs(rng).frame for _ in range(draws))
    shares = {EXECUTOR: 0.33, CASH_TYPE: 0.33, CASH_NAME: 0.34}
    assert set(frames) == set(shares)
    assert all(frames[frame] / draws == pytest.approx(share, abs=0.015) for frame, share in shares.items())
