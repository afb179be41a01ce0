"""Locust, which patches the standard library of its process for gevent: imported before everything else."""

from gevent import events

# For each module that gevent patches it would read what every installed package has announced for that, of 130 packages
# 25 times: a fifth of the time of all imports. What gevent itself has announced only warns of patches left out.
events.notify_and_call_entry_points = events.notify

from locust import LoadTestShape, User, task  # noqa: E402

__all__ = ["LoadTestShape", "User", "task"]
