"""Spare a process that Locust is about to patch the search for plug-ins of gevent.

gevent reads the metadata of all installed packages for each of the forty events of its patch: a fifth of a second of a
processor at every start of a load.
"""

from gevent import events

events.notify_and_call_entry_points = events.notify
