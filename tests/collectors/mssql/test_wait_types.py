"""What SQL Server's waits stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published_waits import BACKGROUND_REQUEST

from stallmark.collectors.mssql.waits import class_of, is_benign, wait_class

WAIT_CLASSES = ("io", "lock", "wal", "cpu", "client", "other")


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
        ("suspended", "PAGELATCH_UP", ("other", "PAGELATCH_UP")),  # in memory, no I/O
        ("suspended", "LATCH_EX", ("other", "LATCH_EX")),
        ("suspended", "RESOURCE_SEMAPHORE", ("other", "RESOURCE_SEMAPHORE")),
        ("suspended", "CXPACKET", ("other", "CXPACKET")),
        ("rollback", None, ("other", "rollback")),
        (*BACKGROUND_REQUEST, ("other", "PAGELATCH_EX")),
    ],
)
def test_wait_classes(status: str | None, wait_type: str | None, expected: tuple[str, str]) -> None:
    assert wait_class(status, wait_type) == expected


@pytest.mark.parametrize(
    "wait_type", ["LAZYWRITER_SLEEP", "CHECKPOINT_QUEUE", "XE_TIMER_EVENT", "BROKER_TO_FLUSH", "HADR_WORK_QUEUE",
                  "DIRTY_PAGE_POLL", "SQLTRACE_INCREMENTAL_FLUSH_SLEEP", "REQUEST_FOR_DEADLOCK_SEARCH", "LOGMGR_QUEUE",
                  "SLEEP_TASK", "QDS_ASYNC_QUEUE"],
)  # fmt: skip
def test_benign_waits(wait_type: str) -> None:
    assert is_benign(wait_type)


@pytest.mark.parametrize(
    "wait_type", ["PAGEIOLATCH_SH", "WRITELOG", "LCK_M_S", "HADR_SYNC_COMMIT", "HADR_GROUP_COMMIT", "THREADPOOL",
                  "IO_QUEUE_LIMIT", "RESOURCE_SEMAPHORE", "LOG_RATE_GOVERNOR", "CXPACKET",
                  "PREEMPTIVE_OS_FLUSHFILEBUFFERS"],
)  # fmt: skip
def test_waits_that_hold_somebody_up(wait_type: str) -> None:
    assert not is_benign(wait_type)


words = st.none() | st.text(min_size=1) | st.sampled_from(["suspended", "PAGEIOLATCH_SH", "WRITELOG", "LCK_M_X"])


@given(words, words)
def test_every_wait_has_a_class(status: str | None, wait_type: str | None) -> None:
    kind, name = wait_class(status, wait_type)
    assert kind in WAIT_CLASSES and name


@given(st.text())
def test_what_is_io_lock_or_log_is_never_benign(wait_type: str) -> None:
    assert class_of(wait_type) == "other" or not is_benign(wait_type)
