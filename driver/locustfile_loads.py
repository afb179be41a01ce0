"""The loads of users in a locustfile, prepared before they start.

Run as `python -m stallmark.driver.locustfile_loads FD`: questions to a server take seconds. Meanwhile a worker of
Locust would send no sign of life, and be given up.
"""

import sys
from contextlib import suppress
from pathlib import Path

from stallmark import capabilities
from stallmark.driver.channel import Closed, inherited_channel
from stallmark.driver.load import LoadSpec
from stallmark.driver.messages import CannotStart, LocustUsers, PreparedLoads, PrepareLoads
from stallmark.driver.pacing import Arrivals
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.loaders import ledger
from stallmark.redact import without_secrets
from stallmark.transactions import define, find_workload, open_workload
from stallmark.transactions.workload import Workload, background_per_user, deck_of


def prepare(order: PrepareLoads) -> list[LoadSpec]:
    """Return the load of each class of users; raise StallmarkError if its database cannot have it."""
    engine = open_engine(order.server)
    loads = [_load_of(users, order.server, engine) for users in order.users]
    ours = next((load for load in loads if load.definition is None), None)
    if ours and order.opens:
        ledger.note_driven(engine)
        open_workload(engine, find_workload(ours.workload), ours.scale, ours.seed)
    return loads


def _load_of(users: LocustUsers, server: str, engine: Engine) -> LoadSpec:
    url = without_secrets(server)
    if users.sql:
        return _load(users, _examined_workload(users, engine), {}, seed=1)
    if not (entry := ledger.read(engine)) or not entry.complete:
        raise StallmarkError(f"{url} holds no whole database of Stallmark: build one with `stallmark db build`.")
    data = entry.identity
    workload = find_workload(data.workload)
    if data.version != workload.data_version:
        raise StallmarkError(f"The database of {url} is of another version of Stallmark: build it again.")
    if not workload.users.deck:
        raise StallmarkError(f"{data.workload} in {url} has no transactions that users could execute.")
    return _load(users, workload, dict(data.scale), data.seed)


def _examined_workload(users: LocustUsers, engine: Engine) -> Workload:
    """Return the workload of a user's own SQL, once the server has taken each of its statements."""
    if not (readers := capabilities.parts("definition")):
        raise StallmarkError("This Stallmark lacks the capability `own_sql`, which drives SQL of your own: install it.")
    workload = define(readers[0](users.sql, Path(users.beside)))
    if not all(transaction.reads_only for transaction in workload.transactions):
        if reason := engine.not_writable_reason(()):
            raise StallmarkError(reason)
        if not (users.shared or engine.is_local):
            raise StallmarkError(
                f"{workload.name} writes into the database {engine.database_name()}, whose rows are not Stallmark's: "
                f"write `shared = True` in {users.name} if a load may change them."
            )
    workload.examine(engine, users.most_users)
    return workload


def _load(users: LocustUsers, workload: Workload, scale: dict[str, int | float], seed: int) -> LoadSpec:
    deck = deck_of(workload, None)
    return LoadSpec(
        users.name,
        workload.name,
        scale,
        deck,
        users=(users.most_users,),
        seed=seed,
        call_timeout_s=users.call_timeout_s,
        arrivals=Arrivals(think_ms=1000 * users.think_time_s, think="exponential"),
        background_per_user=background_per_user(workload, deck),
        definition=None if workload.definition is None else dict(workload.definition),
    )


def main() -> None:
    channel = inherited_channel(sys.argv[1])
    # Imported before the order comes, for the load may be SQL of a user's own.
    for part in ("definition", "workload"):
        capabilities.parts(part)
    with suppress(Closed):  # Locust has gone
        order = channel.expect(PrepareLoads)
        try:
            channel.send(PreparedLoads(prepare(order)))
        except (CallFailed, StallmarkError) as error:
            channel.send(CannotStart(as_reason(error)))


if __name__ == "__main__":
    main()
