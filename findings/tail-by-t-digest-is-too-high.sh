#!/usr/bin/env bash
# The approximate percentiles of DuckDB and of Arrow are too high where a latency matters, in a long tail: p99.9 of a
# million response times comes out 2 to 11 % too high by DuckDB, and 9 to 39 % by Arrow, in each of five samples. Both
# use a t-digest, which is known to be best at the ends. But what it keeps precise are ranks; it has a mean for each
# cluster of values, and in a long tail that mean lies above the value in the cluster's middle. On uniform data both are
# exact, so that a trial with random() shows nothing. DuckDB's figure also changes between executions over the same
# rows, once two threads share them. So p99.9 of two runs on one storage differ by a tenth because of the program that
# took it, and by another at each look. DDSketch keeps its promise of 1 % of the value, and quantile_cont is exact.
#
# Run with DuckDB 2.0.0, PyArrow 26.0.1, ddsketch 3.0.1 and NumPy 2.4.6, on Debian 12, 2026-11-29, each the error
# against the exact percentile in five samples, from the lowest to the highest:
#   uniform, DuckDB approx_quantile: p99 -0.0% to -0.0%, p99.9 -0.0% to -0.0%
#   uniform, Arrow tdigest: p99 -0.0% to -0.0%, p99.9 -0.0% to -0.0%
#   uniform, DDSketch of 1 %: p99 -0.0% to +0.0%, p99.9 -0.9% to -0.9%
#   long tail, DuckDB approx_quantile: p99 +1.2% to +2.4%, p99.9 +2.4% to +10.9%
#   long tail, Arrow tdigest: p99 +3.4% to +7.5%, p99.9 +9.3% to +38.6%
#   long tail, DDSketch of 1 %: p99 -0.9% to +1.0%, p99.9 -0.9% to +0.5%
#   DuckDB, eight executions: 1 value by one thread, several by two
# Source: documentation of DuckDB, "Approximate Aggregates", of PyArrow, "compute.tdigest" (delta 100 by default), and
# Dunning and Ertl, "Computing extremely accurate quantiles using t-digests".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    duckdb==2.0.0 pyarrow==26.0.1 ddsketch==3.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ddsketch import DDSketch

LEVELS = [0.99, 0.999]
connection = duckdb.connect()


def by_duckdb(values, threads=1):
    connection.execute(f"SET threads = {threads}")
    drawn = pa.table({"ms": values})  # read by its name
    connection.execute("CREATE OR REPLACE TABLE times AS FROM drawn")
    return np.array(connection.execute(f"SELECT approx_quantile(ms, {LEVELS}) FROM times").fetchone()[0])


def by_arrow(values):
    return pc.tdigest(pa.array(values), q=LEVELS).to_numpy()


def by_ddsketch(values):
    sketch = DDSketch(0.01)
    for value in values[:200_000].tolist():
        sketch.add(value)
    return np.array([sketch.get_quantile_value(level) for level in LEVELS])


samples = {
    "uniform": lambda chance: chance.random(1_000_000),
    "long tail": lambda chance: chance.lognormal(0, 2, 1_000_000),
}
ways = {"DuckDB approx_quantile": by_duckdb, "Arrow tdigest": by_arrow, "DDSketch of 1 %": by_ddsketch}
worst = {}
for shape, draw in samples.items():
    for name, way in ways.items():
        errors = []
        for seed in range(5):
            values = draw(np.random.default_rng(seed))
            exact = np.quantile(values[:200_000] if way is by_ddsketch else values, LEVELS, method="lower")
            errors.append(way(values) / exact - 1)
        low, high = np.min(errors, 0), np.max(errors, 0)
        worst[shape, name] = low, high
        print(f"{shape}, {name}: p99 {low[0]:+.1%} to {high[0]:+.1%}, p99.9 {low[1]:+.1%} to {high[1]:+.1%}")
values = samples["long tail"](np.random.default_rng(0))
alike = {by_duckdb(values, 1)[1] for _ in range(8)}
apart = set()
connection.execute("SET threads = 2")
for _ in range(8):
    apart.add(connection.execute("SELECT approx_quantile(ms, 0.999) FROM times").fetchone()[0])
print(f"DuckDB, eight executions: {len(alike)} value by one thread, {'several' if len(apart) > 1 else 'one'} by two")
duckdb_low, duckdb_high = worst["long tail", "DuckDB approx_quantile"]
arrow_low, arrow_high = worst["long tail", "Arrow tdigest"]
as_seen = min(duckdb_low) > 0 and duckdb_high[1] > 0.05 and min(arrow_low) > 0 and arrow_high[1] > 0.2
as_seen &= all(np.max(np.abs(bound)) < 0.002 for shape, name in worst if shape == "uniform" and "DDS" not in name
               for bound in worst[shape, name])
as_seen &= all(np.max(np.abs(bound)) <= 0.0101 for shape, name in worst if "DDS" in name for bound in worst[shape, name])
sys.exit(0 if as_seen and len(alike) == 1 and len(apart) > 1 else "This has changed.")
PYTHON
