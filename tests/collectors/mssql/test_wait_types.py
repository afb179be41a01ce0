"""Meanings of SQL Server's waits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support.published_waits import BACKGROUND_REQUEST

from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.analysis.read.waits import part_of
from stallmark.collectors.mssql.waits import _BENIGN, class_of, is_benign, wait_class

IDLE = YAML(typ="safe").load(Path(__file__).with_name("idle_waits.yaml"))


@pytest.mark.parametrize(
    ("status", "wait_type", "expected"),
    [
        (None, None, ("client", "idle")),
        ("running", None, ("cpu", "CPU")),
        ("runnable", None, ("cpu", "runnable")),
        ("runnable", "PAGEIOLATCH_SH", ("cpu", "runnable")),  # the page has come
        ("suspended", "PAGEIOLATCH_EX", ("io", "PAGEIOLATCH_EX")),
        ("suspended", "IO_COMPLETION", ("io", "IO_COMPLETION")),
        ("running", "PREEMPTIVE_OS_WRITEFILEGATHER", ("io", "PREEMPTIVE_OS_WRITEFILEGATHER")),
        ("suspended", "WRITELOG", ("wal", "WRITELOG")),
        ("suspended", "LOGBUFFER", ("wal", "LOGBUFFER")),
        ("suspended", "LOGMGR_FLUSH", ("wal", "LOGMGR_FLUSH")),
        ("suspended", "LCK_M_X", ("lock", "LCK_M_X")),
        ("suspended", "SOS_SCHEDULER_YIELD", ("cpu", "SOS_SCHEDULER_YIELD")),
        ("suspended", "ASYNC_NETWORK_IO", ("client", "ASYNC_NETWORK_IO")),
        ("suspended", "PAGELATCH_UP", ("latch", "PAGELATCH_UP")),  # in memory, no I/O
        ("suspended", "LATCH_EX", ("latch", "LATCH_EX")),
        ("suspended", "HADR_SYNC_COMMIT", ("replica", "HADR_SYNC_COMMIT")),
        ("suspended", "HADR_GROUP_COMMIT", ("replica", "HADR_GROUP_COMMIT")),
        ("suspended", "HADR_WORK_QUEUE", ("other", "HADR_WORK_QUEUE")),
        ("suspended", "RESOURCE_SEMAPHORE", ("memory", "RESOURCE_SEMAPHORE")),
        ("suspended", "CXPACKET", ("parallel", "CXPACKET")),
        ("suspended", "CXSYNC_PORT", ("parallel", "CXSYNC_PORT")),
        ("suspended", "THREADPOOL", ("worker", "THREADPOOL")),
        ("rollback", None, ("other", "rollback")),
        (*BACKGROUND_REQUEST, ("latch", "PAGELATCH_EX")),
    ],
)
def test_wait_classes(status: str | None, wait_type: str | None, expected: tuple[str, str]) -> None:
    assert wait_class(status, wait_type) == expected


def test_idle_waits_are_those_of_others_but_for_reasons() -> None:
    others = {name for kit in ("first_responder_kit", "telegraf", "further") for name in IDLE[kit].split()}
    assert len(others) > 90
    assert {name for name in others if not is_benign(name)} == IDLE["counted"].keys()
    assert {name for name in _BENIGN if name not in others} == IDLE["idle"].keys()
    assert all(reason.endswith(".") for why in ("counted", "idle") for reason in IDLE[why].values())


@pytest.mark.parametrize(
    "wait_type", ["PAGEIOLATCH_SH", "WRITELOG", "LCK_M_S", "HADR_SYNC_COMMIT", "HADR_GROUP_COMMIT", "THREADPOOL",
                  "IO_QUEUE_LIMIT", "RESOURCE_SEMAPHORE", "LOG_RATE_GOVERNOR", "CXPACKET",
                  "PREEMPTIVE_OS_FLUSHFILEBUFFERS"],
)  # fmt: skip
def test_waits_that_hold_somebody_up(wait_type: str) -> None:
    assert not is_benign(wait_type)


@pytest.mark.parametrize(
    ("wait_type", "part"), [("HADR_SYNC_COMMIT", "log"), ("WRITELOG", "log"), ("PAGELATCH_EX", "rest"),
                            ("RESOURCE_SEMAPHORE", "rest"), ("PAGEIOLATCH_SH", "read")],
)  # fmt: skip
def test_a_commit_that_waits_for_a_replica_is_commit_time(wait_type: str, part: str) -> None:
    assert part_of(class_of(wait_type), wait_type) == part


words = st.none() | st.text(min_size=1) | st.sampled_from(["suspended", "PAGEIOLATCH_SH", "WRITELOG", "LCK_M_X"])


@given(words, words)
def test_every_wait_has_a_class(status: str | None, wait_type: str | None) -> None:
    kind, name = wait_class(status, wait_type)
    assert kind in WAIT_CLASSES and name


@given(st.text())
def test_what_is_io_lock_or_log_is_never_benign(wait_type: str) -> None:
    assert class_of(wait_type) == "other" or not is_benign(wait_type)
