"""A Locust user that represents a virtual user in an executor, both in the conductor and on load machines."""

from locust import User, task  # isort: skip  (patches the process: before everything else)
import gevent

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
