"""A Locust user that stands for a virtual user in an executor, in the conductor and on load machines alike."""

from locust import User, task  # isort: skip  (patches the process: before everything else)
import gevent

from stallmark.driver.executor_pool import ExecutorPool


class VirtualUserHandle(User):
    """The handle on one virtual user. `pool` has the executors of this machine."""

    pool: ExecutorPool

    def on_start(self) -> None:
        self.number = self.pool.start_user()

    @task
    def be_driven(self) -> None:
        gevent.sleep(3600)

    def on_stop(self) -> None:
        self.pool.stop_user(self.number)
