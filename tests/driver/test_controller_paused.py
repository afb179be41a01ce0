"""A server that stands still for five seconds, under a load that arrives all the same."""

import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
from support.driving import drive_to_the_end

from stallmark.analysis.read.latency import Latencies
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.record import histogram as hdr

RATE, USERS, SECONDS, PAUSED_S = 150.0, 20, 9, 5.0


def server_processes(data: Path) -> list[psutil.Process]:
    """All of the cluster in `data`, the one that starts them first: so it starts no other meanwhile."""
    server = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    return [server, *server.children(recursive=True)]


def test_a_pause_of_the_server_shows_in_the_slowest_thousandth_as_long_as_it_was(bank, embedded_server, tmp_path):
    """Latency counts from when a transaction was to begin. Of those that came while the server stood still as many
    waited for 4 s as for 1 s; who counts from when a user got round to them sees the few under way (coordinated
    omission, G. Tene)."""
    stopped: list[psutil.Process] = []

    def go_on() -> None:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):  # a session has ended since
                process.resume()

    timer = threading.Timer(PAUSED_S, go_on)

    def pause_once(progress) -> None:
        if progress.elapsed_s > 2 and not stopped:
            stopped.extend(server_processes(embedded_server.data))
            for process in stopped:
                process.suspend()
            timer.start()

    timeline = Timeline(consecutive_steps([USERS], ramp_s=0, warm_up_s=0, measure_s=SECONDS))
    try:
        record = drive_to_the_end(bank, tmp_path / "run", timeline, Arrivals("fixed", rate=RATE), pause_once)
    finally:
        timer.cancel()
        go_on()

    latency, service = Latencies.empty(), Latencies.empty()
    for rows in record.table("transactions").to_batches():
        latency.merge(rows["latency_gaps"], rows["latency_counts"])
        service.merge(rows["service_gaps"], rows["service_counts"])
    done = latency.size
    assert done >= 0.95 * RATE * SECONDS and not total_errors(record)

    # Of n evenly spaced arrivals in the pause the k-th last waited for k / RATE less than the first.
    for percentile in (0.9, 0.99):
        truth_ms = 1000 * (PAUSED_S - (1 - percentile) * done / RATE)
        assert latency.percentile_ms(percentile) >= 0.98 * truth_ms
    slowest_ms = max_share(latency, 0.001)
    assert slowest_ms >= 0.98 * 1000 * PAUSED_S
    over_1_s = over(latency, 1000)
    assert over_1_s >= 0.95 * RATE * (PAUSED_S - 1)
    assert over(service, 1000) <= USERS < over_1_s / 10


def total_errors(record) -> Counter:
    return Counter(row["code"] for row in record.table("errors").to_pylist())


def over(latencies: Latencies, limit_ms: float) -> int:
    return round((latencies.share_over(limit_ms) or 0) * latencies.size)


def max_share(latencies: Latencies, share: float) -> float:
    """Return the time that this share took at least, in ms, whatever the size of the sample."""
    beyond = np.cumsum(latencies.counts[::-1])
    return float(hdr.VALUES_US[::-1][np.searchsorted(beyond, max(1, share * latencies.size))] / 1000)
