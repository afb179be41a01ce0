"""Storage that stands still on a clock, under a replay with the real fio and under raw I/O at a rate: what is due
meanwhile waits, however many threads are stuck."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.emulated_bench import build_dir
from support.replays import READS_20, a_piece, a_window

from stallmark.record.histogram import VALUES_US
from stallmark.sizing.replay import judge_level
from stallmark.sizing.replay_io import WARM_UP_S, Due, Player, spans_of
from stallmark.stats.ceiling_search import Next, Why
from stallmark.storage.arrivals import Plan
from stallmark.storage.emulator.arrays import preloadable
from stallmark.storage.probe_file import LEAST_BYTES, ProbeFile, make_probe_file
from stallmark.storage.programs import RawProcess

__all__ = ["build_dir"]
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"),
]
PER_S, SECONDS = 200, 8
STILL_S = 0.25
"""Of every second. Of what comes at random, this share waits; 20 ms less of it waits for longer than 20 ms."""
SHARE = STILL_S - 0.02
STALLING = b"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void *behind(const char *name)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (t.tv_nsec < 250000000) {
		t.tv_nsec = 250000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
	}
	return dlsym(RTLD_NEXT, name);
}

#define EXPORT __attribute__((visibility("default"))) ssize_t
#define READS(name, ...) \\
EXPORT name(int f, __VA_ARGS__) { ssize_t (*real)(int, __VA_ARGS__) = behind(#name); return real
READS(pread, void *b, size_t n, off_t o)(f, b, n, o); }
READS(pread64, void *b, size_t n, off64_t o)(f, b, n, o); }
READS(preadv, const struct iovec *p, int n, off_t o)(f, p, n, o); }
READS(preadv64, const struct iovec *p, int n, off64_t o)(f, p, n, o); }
READS(preadv2, const struct iovec *p, int n, off_t o, int g)(f, p, n, o, g); }
READS(preadv64v2, const struct iovec *p, int n, off64_t o, int g)(f, p, n, o, g); }
"""


@pytest.fixture
def stalling(build_dir: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(preloadable("stalling", {"stalling.c": STALLING}, (), build_dir))}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[ProbeFile]:
    with make_probe_file(tmp_path / "data", LEAST_BYTES) as made:
        try:
            os.close(os.open(made.path, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("the file system of the temporary directory has no direct I/O")
        yield made


@pytest.mark.skipif(not shutil.which("fio"), reason="There is no fio here.")
def test_a_replay_counts_what_waits_for_stuck_threads(file, stalling):
    rng = np.random.default_rng(3)
    due = Due(np.sort(rng.uniform(0, WARM_UP_S + SECONDS, PER_S * (2 + SECONDS))), np.full(PER_S * (2 + SECONDS), 8192))
    none = Due(np.empty(0), np.empty(0, dtype=np.int64))
    player = Player("fio", file, file, stalling, True, limit_ms=5)
    played = player.play({"reads": due, "writes": none, "log": none}, WARM_UP_S + SECONDS, rng)
    reads = played["reads"]
    assert (reads.ms > 20).mean() < SHARE / 2 < SHARE * 0.8 < (reads.since_due_ms > 20).mean() < SHARE * 2
    spans = spans_of([a_window(a_piece(SECONDS, reads=PER_S))], 1.0)
    level = judge_level(Next(1.0, Why.FIRST), [played], spans, READS_20, 1.0)
    assert level.verdict == "broke" and not level.backlog


@pytest.mark.parametrize("outstanding", [1, 64])
def test_raw_io_at_a_rate_counts_what_waits_for_stuck_threads(file, stalling, outstanding):
    plan = Plan(str(file.path), "read", {8192: 1.0}, file.bytes, outstanding, PER_S, seed=3)
    began = time.monotonic()
    process = RawProcess(plan.command(began), stalling, "read", lambda: time.monotonic() - began)
    time.sleep(SECONDS)
    process.stop()
    process.wait()
    seconds = process.pop_work()
    ended = sum(work.buckets for _, work, _ in seconds)
    assert SHARE * 0.8 < ended[VALUES_US > 20_000].sum() / ended.sum() < SHARE * 2
    assert ended.sum() > PER_S * (SECONDS - 3) and sum(waiting is not None for _, _, waiting in seconds) > SECONDS / 2
