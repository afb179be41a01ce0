"""The thresholds of the analysis, in one place, each with its reason."""

# The driver. ------------------------------------------------------------------------------------------------

DRIVER_OVERHEAD = 0.05
"""Maximum share of a closed loop's user time that was neither think time nor inside a call. Below it a perfect driver
would reach at most 5 % more throughput: the size of effect we do not report either."""

EXECUTOR_CPU = 0.90
"""Maximum CPU of an executor, as a share of one core. Python holds one interpreter lock per process: at 90 % the queue
for the lock is that of an M/M/1 server at 0.9, with nine waiting, and users start late whatever the server does."""

LAG_SHARE = 0.05
LAG_FLOOR_MS = 0.2
"""Maximum mean start delay of the driver, as a share of a user's mean cycle: latency and, in a closed loop, think time.
Latency counts from the scheduled start and so contains the delay: throughput is off by the delay's share of the cycle,
and 5 % is the error we accept elsewhere. An open loop has no think time. Waking a sleeping thread costs 0.05-0.1 ms on
an idle Linux host, so up to twice that is never attributed to the driver."""

LITTLE = 0.05
"""Maximum relative error of Little's law, users ≈ TPS × (latency + think time), in a closed loop. Both sides are
counted, so a larger gap means that seconds, users or transactions are missing from the record."""

NOT_CONNECTED = 0.05
"""Maximum share of the users without a session, on average, while a step was measured. With 5 % fewer users the load
differs by 5 %, as much as we do not report elsewhere."""

CLOCKS_APART_MS = 50
"""Maximum uncertainty of the clocks of load machines in ms: with more, the seconds of two machines differ
noticeably."""

UNREPORTED_S = 2.0
"""Seconds that may be missing from the last report of a lost executor. Executors report whole seconds, four times a
second, so a lost one takes up to 1.25 s with it. A load machine passes them on 0.4 s after each second, so a lost one
takes up to 1.4 s. It is more if a busy machine keeps them from reporting."""

# Is the comparison valid? -----------------------------------------------------------------------------------

FOREIGN_IO = 0.05
"""Maximum share of blocks or bytes for other databases."""

FOREIGN_FLOOR_PER_S = 10.0
"""Foreign blocks or I/Os per second that never matter. A single 7,200 rpm disk does about 100 random reads a second:
this is a tenth of the slowest device's rate, however small our own share is because the pool answers everything.
Autovacuum's check of an idle database reads 100 blocks at once, which in a short interval is 5 per second."""

FOREIGN_BUSY = 0.05
"""Utilisation of a real device below which it does not delay I/Os, whatever else reads from it."""

FOREIGN_CPU = 0.05
"""Maximum share of the CPUs of the server's machine that other programs used: they reduce its capacity by no larger
share."""

CPU_DELAY = 0.10
"""Maximum share of the transactions' time in which the server's tasks were runnable and waited for a CPU. Measured on 2
CPUs: 4 users of the bank on an emulated array, other programs on 12 to 90 % of the CPUs, 10 runs. At 5 % of the time
(the cost of waking up) they did 372 transactions per second, at 9 % 366, at 12 % 351 and at 25 % 316. So throughput
falls by 5 %, the size of effect that is not reported, at about a tenth."""

LATE = 0.05
"""Maximum share of an emulated array's I/Os for which the real device was slower, so that the emulation was not as
configured."""

ACTIVE_COUNTED = 32 << 30
"""Maximum bytes that an emulated array counts as active. Its table has room for 64 GiB of extents, in buckets of 16
(model.h). Half full, one bucket in 270 overflows, and fewer than one extent in a thousand goes uncounted; beyond,
counts are too small."""

GAP_S = 3.0
"""Distance between samples, in intervals of the collector and at least in seconds, from which the time between them is
unknown: at an interval of 1 s two samples were missed."""

LOST_WITHIN_S = 10
"""Seconds within which all users of a lost server notice: each at its next call. The same number of connections lost
one by one over a whole step does not mean that the server was lost."""

DATED_ROUGHLY = 0.01
"""Maximum error of the first and last sample's time, as a share of the measured interval. Every rate is off by as much:
a fifth of what is called a difference (SAME)."""

UNCOVERED = 0.10
"""Maximum share of the measured interval that counters may miss, and GAP_S in any case: the first and the last sample
need not fall on its ends."""

FAILED = 0.01
"""Maximum share of transactions given up: above it a step's latencies describe a selection of the easy ones."""

GROWTH = 0.05
"""Maximum growth of the database over a run: above it later runs or seconds faced another database."""

SHALLOW_DAYS = 40
"""Minimum number of initial trade days of a brokerage that may judge memory and flash. With fewer, the 50 latest trades
of an account, which transactions ask for, are more than a tenth of its history, and too much is hot. From a pool of 2 %
of the data to one of 8 %, 0.68 of the reads are left with 10 days, 0.54 with 40, 0.50 with 90, and 0.50 in production
databases (docs/how-real-is-the-load.md)."""

DEEP_BYTES = {"PostgreSQL": 1_850_000_000, "SQL Server": 1_140_000_000}
"""Bytes of a brokerage of DEEP_CUSTOMERS customers with SHALLOW_DAYS, as the loader estimates them (a test
compares)."""
DEEP_CUSTOMERS = 1_000

CHECKPOINTS = 3
"""Minimum number of checkpoints in a measured interval: with fewer, its writes depend on where the interval began."""

CYCLES_COVER = 0.5
"""Minimum share of the measured interval that whole cycles must fill for the figures to be taken over them. Three
regular cycles fill at least three fifths, as at most two are cut off at the ends; with less they are not regular."""

CHECKPOINT_WRITES = 0.05
"""Minimum rate of a checkpoint's writes, as a share of the fastest second's pages: a checkpoint writes at full speed,
and a trickle between two is not part of either."""

CHECKPOINT_QUIET_S = 10.0
"""Pause in the writes, in seconds, that still belongs to one checkpoint: two samples of SQL Server's counters."""

REPORT_DELAY_S = {"PostgreSQL": 0.9}
"""Mean delay in seconds until a server's counters show the work of its sessions. PostgreSQL's backends hand in their
counts at most once a second and between transactions. Measured against the emulated array, whose counters are
immediate: samples agree second by second when they are dated 0.8-1.0 s back (error 1/5 to 1/9 of undated)."""

NODES_APART = 0.5
"""Share of the longest page life below which that of a NUMA node is called short: its pages are then read again twice
as often as others."""

AUTOVACUUM_READS = 0.05
AUTOVACUUM_WRITES = 0.03
"""Maximum shares of the I/O on data files. Transactions do not cause autovacuum's I/O while they run, and which tables
are due depends on when measuring began. Reads may be as many as foreign I/O; writes fewer, as a database writes ten
times less."""

MISPLACED = 0.05
"""Maximum share of the I/O that may be counted in another interval than it was done in, as for foreign I/O."""

AHEAD = 1.1
"""Ratio of the device's read time to the server's, from which the server counted waits for reads that had begun ahead.
On the same reads both agree within 1 % (9.13 and 9.03 ms, 67.1 and 67.3 ms)."""

LATE_FLOOR_PER_S = 10.0
"""I/Os per second of an emulated array below which late ones do not matter."""

HISTOGRAM_LOST = 0.001
"""Maximum share of I/Os whose duration the server lost: above it its histogram may lack the slowest I/Os."""

ROUNDING = 1e-9
"""Relative fall of a counter that is not a reset but the rounding of its inputs: doubles have 16 digits."""

# Is the load the workload's? (analysis/validity) -------------------------------------------------------------

MIX = 0.01
"""Maximum relative deviation of each of the users' transactions from its share of the deck."""

FOLLOWED = 0.01
"""Maximum relative deviation of the number of transactions that others gave rise to."""

UNDER_WAY_S = 8.0
"""Seconds of arrivals that may be under way as orders at both ends of an interval: twice the mean time that the market
takes (2 s for 60 % of the orders, 7 s for those with a limit). The number changes with the users' rate …"""

FOLLOWED_AT_A_CHANGING_RATE = 0.1
"""… and then this relative deviation is allowed."""

CHANCE = 4.0
"""Standard deviations within which a deviation is chance. Of eight types in a sound run, one in two thousand is beyond.
With three it would be one in fifty: one in six experiments of nine runs would lose a comparison without cause."""

ABORTED = 0.01
"""Maximum number of calls per transaction that the server ended because of others. With too few customers for its users
the brokerage aborted 28 % (reference/brokerage.md): then contention is measured, and repeated work counts as reads."""

LOCKED = 0.20
"""Maximum share of the users' time spent waiting for locks. Such a user sends no I/O to the storage: at one fifth only
four fifths of the users load it, and without locks the throughput could be up to 1 / (1 − 0.2) = 1.25 times as high, as
much as DEVICE_FREE attributes to a device. It is not less, because the holder of a lock may itself wait for I/O, and
the users queued behind it then wait for the device too."""

OVER_LIMIT = 0.10
"""Maximum share of a type that may take longer than its limit: the limits are of 90th percentiles."""

LATE_START_S = 0.1
"""Maximum mean start delay in seconds of transactions that the market and the timers start. An order is answered after
2 s on average: a delay of a twentieth changes the number under way by 5 %, which we do not report elsewhere."""

QUERY_WAITED_S = 0.1
"""Delay in seconds from which a query waited for a stream. A free stream begins it within milliseconds, or within tens
of milliseconds if all cores of the machine are busy."""

BURST = 0.10
BURST_CALLS = 5
"""Minimum share and minimum number of a transaction's calls that failed in a second of a burst of errors. One or two
failures of a rare transaction are not a burst."""

# What is the bottleneck? ------------------------------------------------------------------------------------

DEVICE_LIMITS = 0.5
DEVICE_FREE = 0.2
"""Share of the users' *progressing* time (neither idle in the client nor queued for another transaction's lock) spent
in I/O and WAL, from which a device limits and below which it does not. Users queued for a lock wait for a holder who is
itself progressing, so they add nothing. By Amdahl's law a device without latency would give at most 1 / (1 − share):
above one half more than everything else together, below one fifth at most 1.25 times the throughput."""

PROGRESS_FLOOR = 0.05
"""Minimum progressing time: with less, the load asks too little of the server to find any bottleneck in it."""

DEVICE_QUEUES = 0.5
"""Busy share below which an I/O is served longer than it queues (M/M/1: the queue is ρ / (1 − ρ) services)."""

DEVICE_BUSY = 0.9
"""Busy share at which queueing is ten times the service. Used for emulated arrays only: a flash device or an
array serves many requests at once and shows 100 % long before it is saturated, and virtual disks call
themselves rotational."""

ABOVE = 0.5
"""Share of the users' time in storage from which it is attributed to the layers above the device: more than in the
device itself."""

DEVICE_OWN = 0.8
"""Share of the server's I/O stall that the device accounts for: below it the report mentions that the device was
faster."""

LOG_SAID = 0.01
LOCKS_SAID = 0.05
"""Shares of the users' time from which a verdict on a device mentions the log and locks: a smaller share of the log is
written as 0 %, and fewer locks explain no difference that we report."""

CPU_BUSY = 0.9
"""Share of the host's CPUs above which the CPU, not the device, is called the limit."""

CPU_LIMITS = 1 - DEVICE_FREE
"""Share of the host's CPUs from which storage is not called the bottleneck without the CPUs. A transaction needs its
CPU time on any storage (utilisation law), so that no storage gives more than 1 / share of the throughput. From here on
that is at most the gain of a device which is not called a limit (DEVICE_FREE)."""

CPU_ALONE = 0.95
"""Share of the host's CPUs from which they alone are called the limit: there no storage gives more than 1 / 0.95, which
is the difference of single runs (SAME)."""

# Can the times be compared? ---------------------------------------------------------------------------------

SCHEDULING_MS = 2.0
SCHEDULING_CPU = 0.7
"""Read time below which, and share of the CPUs above which, the server's read time is unlike the device's. Its mean
read time is then up to twice the device's, because a backend waits for a CPU after its I/O is done (measured:
reference/postgres.md)."""

# Statistics -------------------------------------------------------------------------------------------------

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""The percentiles of latencies, each with the share of transactions that do not exceed it."""

SAMPLES_BEYOND = 10
"""Minimum number of transactions beyond a percentile. With p99, 1,000 transactions leave 10 beyond. The number beyond
is then known to about a third (1/√10), and so is the position of the percentile."""

SHARE_SAMPLES = 30
"""Minimum number of samples behind a share or mean, of sessions or of transactions: one half of 30 is known to 18
points (95 %), and one of fewer samples would be of little use."""

CORRELATION_PAIRS = 10
"""Minimum number of pairs of seconds: with fewer, the 95 % interval spans more than half of all possible values."""

SAME = 0.05
"""Relative difference below which throughputs are called equal; single runs on one machine differ by 2-5 % on their
own."""

MAILBOX_IOPS = 0.12
"""I/Os of data files per mailbox and second, which convert I/Os to mailboxes: the profile of Jetstress 2010."""

LOADS_READ = 0.02
"""Maximum relative difference of the server's reads from the sum of the loads' reads that account for them."""
LEAST_DONE = 20
"""Minimum number of a load's transactions in a step whose rate is compared with others: rates of fewer vary by more
than 22 %, as those of independent events do."""
HOST_FREE = 0.10
"""Share of the host's CPUs or memory in use up to which they do not limit a test of storage, as ESG Lab kept them (IBM
System Storage DS5020 with mixed real-world workloads, 2010)."""

REPLICATES = 3
"""The fewest runs per variant for a verdict."""

# Is it steady? (stats/steady_state.py, analysis/steady) --------------------------------------------------------

MSER_BATCH = 5
"""Values in a batch of MSER-5: the size its authors found best, and all the evaluations since use."""

BATCHES = 30
"""More gain barely anything (Schmeiser: Batch size effects in the analysis of simulation output, Operations Research 30
(1982) 556), and the longer batches are the less neighbours have in common.
"""

BATCHES_FEWEST = 20
"""The fewest seconds that are judged: Pettitt's approximation gives no p below 0.0125 for fewer than 14 batches, and
with autocorrelation some batches only repeat others.
"""

RESEMBLANCE_NOISE = 0.25
"""Standard deviation of a correlation estimated from BATCHES values; a smaller one may be chance. A true correlation
shows in the many shorter means.
"""

RESEMBLANCE_MOST = 0.9
"""Maximum correlation that 30 batches can distinguish from 1. A higher one would make any trend one of chance."""

VALUES_MOST = 200
"""Maximum number of values: 200 give a correlation to within 0.07, and half an interval of ten minutes still has its
seconds.
"""

UNSTEADY_P = 0.025
"""The p-value of each of the two tests: together they call one steady interval in twenty unsteady."""

DRIFT = 0.05
"""Change over the measured interval that matters, as a share of the mean. The two halves then differ by 2.5 %, like
runs of one variant on a quiet machine (2-3 %). A test would find a smaller change in any long run, and it is
harmless."""

DRIFT_UNKNOWN = 0.25
"""The reach of the drift's interval beyond which there was not enough to judge by: five times the drift that matters.
"""

NO_RANGE = 1.0
"""The reach of the drift's interval, a rate that doubled or went to nothing, beyond which the interval is meaningless.
"""

HEAD_ERRORS = 4.0
"""Standard errors by which the beginning must differ from the rest to be a warm-up. MSER seeks the cut with the largest
difference, and by chance alone finds two or three."""

HEAD_MATTERS = DRIFT / 2
"""Shift of the interval's mean by a warm-up inside it that makes figures incomparable: what a drift of DRIFT does."""

# Comparing variants (analysis/compare) -----------------------------------------------------------------------

CONFIDENCE = 0.95
"""The confidence of intervals. A p-value must not exceed 1 − CONFIDENCE: one false verdict in twenty equal pairs."""

POWER = 0.8
"""Probability of showing a difference that exists: the usual one (J. Cohen, 1988)."""

READS_OF_ONE_RUN = 0.2
"""The same between single runs, whose variation is unknown: a smaller difference is open. A pool that is still filling
makes them differ by some percent."""

READS_AT_ONE_POOL = 0.05
"""Relative difference of physical reads per transaction between sides that have the same buffer pool. Pool and
transactions determine these reads. If they differ, something else than the storage differs, and may change throughput
by as much."""

AGAIN = 0.02
"""Difference of the first variant, run again at the end, from itself: the run-to-run variation of a quiet machine. A
smaller difference is never called a drift, however little the runs vary. One beyond SAME always is, however much they
vary: the mean of several runs varies less, so it may not differ by more than a single run."""

POOL_REACHED = 0.05
"""Maximum relative difference of buffer pools that were requested equal. Servers round to their own chunks, and SQL
Server's target moves a little with the machine's free memory; reads per transaction are checked as well."""

CLOCK_JUMP_S = 1.0
"""Seconds by which a clock may gain between two samples on our own clock. Time services slew by 0.5 ms a second and
step only when they are off by more (chrony, ntpd: 0.128 s). A sample may wait as long for a busy server, and everything
per second is counted in whole seconds."""

# Causes (analysis/cause) -------------------------------------------------------------------------------------

LITTLE_READS = 0.25
"""Maximum relative difference of the reading sessions that were sampled from those that the server's counters imply.
Assumed: counters take in the server's own processes, and a sampled wait ends when the session runs again, not when its
I/O is done. Chosen after eight runs of one experiment on the embedded server; it closed in all nine fresh ones of an
idle machine (benchmarks/causes.py)."""

SERVICE_ACCOUNTED = 0.25
"""The largest difference of an emulated array's busy time from I/Os × service time, which counts no I/O as sequential.
"""

CPU_ACCOUNTED = 0.25
"""Share of the busy cores that need not be sessions or the driver: the kernel's work for an I/O is done while the
session waits for that I/O, and collectors take some percent of a core."""

LAW_FLOOR_USERS = 0.1
"""Minimum mean number of busy sessions, cores or devices: with fewer, both sides of a law are noise and it is not
judged."""

CAUSE_MOST = 0.5
CAUSE_LITTLE = 0.2
"""Share of a change in response time. Above one half a part is more than all others together, and is called the cause;
below one fifth it is not a cause (the same bounds as DEVICE_LIMITS and DEVICE_FREE, of a change instead of a level).
"""

RARE = 0.1
"""Ratio of the I/Os that a transaction waits for on one side to those on the other, below which their time is not
compared. Fewer than a tenth explain nine tenths of the change by their number alone, and sessions are sampled too
rarely in such few I/Os for a reliable time."""

READS_SAME = 0.1
"""Maximum relative difference of reads per transaction for testing a model of one variant against another: its
prediction assumes equal reads, and would be wrong by the same share."""

ASSOCIATION_BIN_S = 5
"""Length in seconds of the segments behind an elasticity. Counters are not sampled on whole seconds, so neighbouring
seconds share an increment and change less than the work did. With segments of 1 s an elasticity of −0.5 came out as
−0.8 (tests/analysis/test_cause.py)."""

ASSOCIATION_BINS = 30
"""Minimum number of such segments for a correlation. With fewer, single seconds are correlated, whose noise only
weakens it."""

MODEL_ERROR = 0.05
"""Assumed relative error of a prediction for every doubling or halving of the read time. Chosen after eight runs of
benchmarks/causes.py on a machine with other work (reads of 4, 1 and 0.2 ms on the embedded server, each predicted from
the others), where the same experiment later was outside in 4 of 6 pairs, by up to 30 %. It held in 6 of 6 pairs of nine
fresh runs on an idle one (errors of -6.9 to +2.2 %): it is the model's own error, and not that of a machine whose other
work comes and goes."""


# The counters themselves. ----------------------------------------------------------------------------------

COUNTS_AGREE = 0.02
"""Relative difference below which rates of server and device are called equal: their samples are not of the same
moments, and only one of them counts I/O under way at the ends of an interval."""

# The storage itself. ------------------------------------------------------------------------------------------

STEADY_ROUNDS = 5
STEADY_ROUNDS_RANGE = 0.20
STEADY_ROUNDS_SLOPE = 0.10
"""Preconditioned when over five rounds the largest and the smallest mean are within 20 % of their mean, and a straight
line through them rises or falls by no more than 10 % (SNIA, Solid State Storage Performance Test Specification).
"""

WARMING = DRIFT
WARMING_ERRORS = HEAD_ERRORS
"""Flash is still warming up when the share of reads that it leaves to the disks falls from the first half of the
measured interval to the second by more than WARMING of itself, as these reads decide the read time, and by more than
WARMING_ERRORS standard errors of two shares (binomial)."""

# Raw storage (analysis/probe_comparison, probe/summary) ------------------------------------

PROBE_GAIN = 0.25
"""Minimum gain in I/Os per second from doubling the outstanding I/Os: with less, storage is saturated. In a closed loop
latency is outstanding I/Os / rate, so a gain of a quarter costs each I/O 60 % more time. Randomly accessed disks always
gain a little, because fewer and fewer happen to be idle: n I/Os on c disks get n / (n + c − 1) of the maximum rate
(exponential service). With two outstanding I/Os per disk or more, that gain is below a quarter."""

PROBE_SUSTAINED = 0.7
"""Minimum of rate × latency over the requested outstanding I/Os. All of them are under way all the time, so the ratio
is 1 except for the time in the program that issues them. The program fills 256 KiB to write in 0.1 ms, a fifth of a
fast disk's time for such a write. Below this ratio the program or its CPUs were measured."""

PROBE_COLLAPSE = 0.20
"""Loss of I/Os per second compared with the best rate at fewer outstanding I/Os. A longer queue alone loses none;
within a few seconds the rates of one disk differ by some percent by themselves."""

PROBE_TAIL = 3.0
"""The factor by which p99 may grow faster than the outstanding I/Os from the knee on. In a fair queue it grows with
them; three times that is a queue in which some I/Os are passed over repeatedly.
"""

PROBE_UNSTABLE = 0.5
"""Share of the step's median rate below which a window is a slump."""
PROBE_SLUMPS = 0.1
"""Share of a step's windows in a slump from which it is unstable. An occasional garbage collection causes fewer."""
PROBE_WINDOW_IOS = 40
"""Minimum number of I/Os in a window, at the step's mean rate, for its slump to count: of 40 independent I/Os one half
is three standard deviations away. One disk does 40 in half a second, so its windows are longer."""

PROBE_AT_DEVICE = 0.9
"""Share of a probe's bytes that the device must have counted. It counts other programs' I/O too, and some from before
and after the step, so less means that I/O ended above it: in a cache, or compressed."""

PROBE_SMALL_BYTES = 64 * 2**30
"""Minimum size of a probe's file in bytes. Controllers of arrays have up to some tens of GiB of memory, which may
answer a smaller file."""

PROBE_DRIFT = 0.10
"""Change of raw storage between two probes that makes the runs between them incomparable. A smaller change is
indistinguishable from chance in the seconds of a probe, on disks whose single I/Os vary by a third of their mean. A
database waits for more than its disks and changes by less."""
PROBE_BATCHES = 20
"""Number of parts of a step for the interval of its rate. Their rates vary as those of whole steps do from one probe to
the next: a part is longer than the consequences of an I/O. With 20 parts an interval by Student's t is only a fifteenth
wider than with many. A step with fewer windows has fewer parts."""

# The ceiling (ceiling_search.py) ------------------------------------------------------------------------------

CEILING_CONFIRMED = 2
"""Minimum margin of one outcome of a level over the other. A single look is wrong if other work, a checkpoint or a cold
cache falls into it; two equal looks are wrong with the square of that probability."""
CEILING_VISITS = 4
"""Looks at a level after which it is final: if it holds in two of four, it cannot be relied on."""

CEILING_BATCHES = 10
"""Number of parts of a measured interval for judging a level. Their means vary as those of whole intervals do from one
to the next, and Student's t of ten is 15 % wider than of many."""
CEILING_LONGEST = 3
"""Maximum length of a measured interval, in multiples of the planned one, for a level that is too close to the limit to
decide, or of which too little was seen. Its interval is then 1/√3 as wide. A level that is still inconclusive is so
near the ceiling that it may count as either."""
MATCHED_WITHIN = 0.1
"""The largest difference of a stand-in load from each quantity of a profile. Two trials of one load differed by up to 7
% in their writes, because a checkpoint falls into one and not into the other.
"""
