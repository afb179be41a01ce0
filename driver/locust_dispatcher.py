"""Locust's users: a handle on each virtual user in an executor, both in the conductor and on load machines, and the
dispatcher. Locust's own dispatcher reaches a total, ours the number that every load has in a step."""

from locust import User, task  # isort: skip  (patches the process: before everything else)
from collections import Counter
from collections.abc import Iterator, Mapping

import gevent
from locust.dispatch import UsersDispatcher

from stallmark.driver.executor_pool import LoadPool


class VirtualUserHandle(User):
    """The handle on one virtual user. `pool` has the executors of its load on this machine."""

    abstract = True
    pool: LoadPool

    def on_start(self) -> None:
        self.number = self.pool.start_user()

    @task
    def be_driven(self) -> None:
        gevent.sleep(3600)

    def on_stop(self) -> None:
        self.pool.stop_user(self.number)


def user_class(place: int, pool: LoadPool | None = None) -> type[VirtualUserHandle]:
    """Make the class of the users of a load, by its place in the order: conductor and load machines use the same name.
    A process without executors passes no pool.
    """
    return type(f"Load{place}", (VirtualUserHandle,), {"pool": pool})


Counts = dict[str, dict[str, int]]
"""Users by machine and class."""


class LoadsDispatcher(UsersDispatcher):
    """Starts and stops users of several classes at once, at the spawn rate, until each class has its number.

    Users of a class are spread evenly over the machines. Those of a step that only exchanges users of one load for
    users of another come and go in turn.
    """

    _wanted: Mapping[str, int]

    def new_dispatch(
        self,
        target_user_count: int,
        spawn_rate: float,
        user_classes: Mapping[type[User], int] | None = None,  # type: ignore[override]
    ) -> None:
        """Set the number of users of each class. Locust passes None when a machine is lost: nothing changes then."""
        if user_classes is not None:
            self._wanted = {user_class.__name__: users for user_class, users in user_classes.items()}
        super().new_dispatch(target_user_count, spawn_rate)

    def _dispatcher(self) -> Iterator[Counts]:  # type: ignore[override]
        self._dispatch_in_progress = True
        changes = self._changes()
        while True:
            at_once, changes = (
                changes[: self._user_count_per_dispatch_iteration],
                changes[self._user_count_per_dispatch_iteration :],
            )
            for (name, change), times in Counter(at_once).items():
                self._change_users(name, change, times)
                self._current_user_count += change * times
            yield self._users_on_workers
            if not changes:
                break
            gevent.sleep(self._wait_between_dispatch)
        self._dispatch_in_progress = False

    def _changes(self) -> list[tuple[str, int]]:
        """Return class by class, +1 or -1, each class's changes spread evenly over all of them."""
        changes = []
        for name, wanted in self._wanted.items():
            missing = wanted - self._get_user_current_count(name)
            changes += [((index + 0.5) / abs(missing), name, 1 if missing > 0 else -1) for index in range(abs(missing))]
        return [(name, change) for _, name, change in sorted(changes)]

    def _change_users(self, name: str, change: int, times: int) -> None:
        """Start or stop `times` users of a class, each on the machine that has fewest users then, or most."""
        # Reversed for stops: of machines with equally many users, the one that started a user last stops one first.
        here = [self._users_on_workers[machine.id] for machine in self._worker_nodes][::change]
        while times:
            first = sorted(here, key=lambda users: (change * users[name], change * sum(users.values())))[:times]
            at_once = [users for users in first if users[name] == first[0][name]]
            for users in at_once:
                users[name] += change
            times -= len(at_once)

    def _prepare_rebalance(self) -> None:
        """Forget a machine that has gone, without starting its users elsewhere: the run ends."""
        none = dict.fromkeys((user_class.__name__ for user_class in self._user_classes), 0)
        self._users_on_workers = {
            machine.id: self._users_on_workers.get(machine.id, none.copy()) for machine in self._worker_nodes
        }
