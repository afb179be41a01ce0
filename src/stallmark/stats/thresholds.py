"""The thresholds by which the analysis judges, in one place, each with its reason."""

# The driver. ------------------------------------------------------------------------------------------------

DRIVER_OVERHEAD = 0.05
"""Share of a closed loop's user time that was neither think time nor inside a call. Below it the throughput a perfect
driver would reach is at most 5 % higher: the size of effect we do not report either."""

EXECUTOR_CPU = 0.90
"""The highest share of one core that an executor may use. Python holds one interpreter lock per process: at 90 % the
queue for it is as long as an M/M/1 queue at 0.9, nine others wait, and users start late whatever the server does.
"""

LAG_SHARE = 0.05
LAG_FLOOR_MS = 0.2
"""Mean start delay of the driver against the mean cycle of a user: latency and, in a closed loop, think time. Latency
counts from the scheduled start, so the lag is in it: throughput is off by the lag's share of the cycle, and 5 % is the
error we accept elsewhere. In an open loop nobody thinks. Waking a sleeping thread costs 0.05-0.1 ms on an idle Linux
host, so twice that is never called the driver's fault."""

LITTLE = 0.05
"""Users ≈ TPS × (latency + think time) must close within this in a closed loop; both sides are counted, so a
larger gap means that seconds, users or transactions are missing from the record."""

NOT_CONNECTED = 0.05
"""Share of the users who had no session, on average, while a step was measured: a load of so many fewer is another one,
by as much as we do not report elsewhere."""

CLOCKS_APART_MS = 50
"""To within which the clocks of load machines must be known: a second of one machine is else noticeably not that
of another."""

UNREPORTED_S = 2.0
"""Executors report whole seconds, four times a second: with a lost one go up to 1.25 s. A load machine passes them on
0.4 s after each second: with a lost one go up to 1.4 s. It is more where a machine keeps them from reporting."""

# Is the comparison valid? -----------------------------------------------------------------------------------

FOREIGN_IO = 0.05
"""Share of blocks or bytes for other databases."""

FOREIGN_FLOOR_PER_S = 10.0
"""Blocks or I/Os per second. A single 7,200 rpm disk does about 100 random reads a second: less than this is below a
tenth of the slowest device there is, however small our own share is because the pool answers everything. Autovacuum's
check of an idle database reads 100 blocks at once, which in a short interval is 5 per second."""

FOREIGN_BUSY = 0.05
"""A real device below this utilisation does not delay I/Os, whatever else reads from it."""

FOREIGN_CPU = 0.05
"""Share of the CPUs of the server's machine that other programs used. They take no larger share of what it can do."""

CPU_DELAY = 0.10
"""Share of the transactions' time in which the server's tasks were runnable and waited for a CPU. Measured on 2 CPUs:
4 users of the bank on an emulated array, other programs on 12 to 90 % of the CPUs, 10 runs. At 5 % of the time (what
waking up costs) there were 372 transactions per second, at 9 % 366, at 12 % 351 and at 25 % 316. So throughput falls by
5 %, the size of effect that is not reported, at about a tenth."""

LATE = 0.05
"""Share of an emulated array's I/Os for which the real device was slower, so that the emulation was not as configured.
"""

ACTIVE_COUNTED = 32 << 30
"""Bytes. An emulated array counts active extents in a table of 64 GiB of them, in buckets of 16 (model.h). Half full,
one bucket in 270 overflows, and fewer than one extent in a thousand goes uncounted; beyond, a count says too little."""

GAP_S = 3.0
"""Samples further apart than this leave the seconds between them unknown: at 1 s interval two were missed. Of a
collector with a longer interval, so many intervals."""

LOST_WITHIN_S = 10
"""Seconds within which all users of a lost server notice: each at its next call. The same number of connections lost
one by one over a whole step does not mean that the server was lost.
"""

DATED_ROUGHLY = 0.01
"""Share of the measured interval by which the dates of its first and last sample may be off, and with them every rate:
a fifth of what is called a difference (SAME)."""

UNCOVERED = 0.10
"""Share of the measured interval that counters may miss, and GAP_S in any case: the first and the last sample
need not fall on its ends."""

FAILED = 0.01
"""Share of transactions given up above which a step's latencies describe a selection of the easy ones."""

GROWTH = 0.05
"""Growth of the database over a run above which later runs or seconds faced another database."""

SHALLOW_DAYS = 40
"""Initial trade days of a brokerage below which memory and flash are not judged by it: the 50 latest trades of an
account, which transactions ask for, are then more than a tenth of its history, and too much is hot. From a pool of 2 %
of the data to one of 8 %, 0.68 of the reads are left with 10 days, 0.54 with 40, 0.50 with 90, and 0.50 in production
databases (docs/how-real-is-the-load.md)."""

DEEP_BYTES = {"PostgreSQL": 1_850_000_000, "SQL Server": 1_140_000_000}
"""The data of a brokerage of 1,000 customers with SHALLOW_DAYS, as the loader estimates them (a test compares)."""
DEEP_CUSTOMERS = 1_000

CHECKPOINTS = 3
"""Fewer in a measured interval and its writes are an accident of where the interval began."""

CYCLES_COVER = 0.5
"""Share of the measured interval that whole cycles must fill for the figures to be taken over them. Three regular ones
fill at least three fifths, as no more than two are cut off at the ends; less, and they are not regular."""

CHECKPOINT_WRITES = 0.05
"""Share of the fastest second's pages: a checkpoint writes at full speed, and a trickle between two is not part of
either.
"""

CHECKPOINT_QUIET_S = 10.0
"""Two samples of SQL Server's counters: writes that pause for less are one checkpoint's."""

REPORT_DELAY_S = {"PostgreSQL": 0.9}
"""How late, on average, a server's counters show what its sessions did. PostgreSQL's backends hand in their counts at
most once a second and between transactions. Measured against the emulated array, whose counters are immediate: samples
agree second by second when they are dated 0.8-1.0 s back (error 1/5 to 1/9 of undated)."""

NODES_APART = 0.5
"""Share of the longest page life below which that of a NUMA node is called short: its pages are read again twice as
often as others."""

AUTOVACUUM_READS = 0.05
AUTOVACUUM_WRITES = 0.03
"""Shares of the I/O on data files. Nobody asks for it while transactions run, and which tables are due is a matter of
when measuring began: of reads as much as of foreign I/O, of writes less, as there are ten times fewer of them."""

MISPLACED = 0.05
"""Share of the I/O that may be counted in another interval than it was done in, as foreign I/O may be."""

AHEAD = 1.1
"""How many times as long as for the server a read takes at the device, from which on the server counted waits for reads
that had begun ahead: of the same reads the two agree within 1 % (9.13 and 9.03 ms, 67.1 and 67.3 ms)."""

LATE_FLOOR_PER_S = 10.0
"""I/Os per second of an emulated array below which it does not matter that some were late."""

HISTOGRAM_LOST = 0.001
"""Share of I/Os whose duration the server lost above which its histogram says nothing of the slowest."""

ROUNDING = 1e-9
"""Relative fall of a counter that is not a reset but the rounding of its inputs: doubles have 16 digits."""

# Is the load the workload's? (analysis/validity) -------------------------------------------------------------

MIX = 0.01
"""Relative deviation of each of the users' transactions from its share of the deck."""

FOLLOWED = 0.01
"""Relative deviation of how many transactions others gave rise to."""

UNDER_WAY_S = 8.0
"""Orders under way at both ends of an interval may be as much as comes in so many seconds: twice the mean time that
the market takes (2 s for 60 % of the orders, 7 s for those with a limit). It goes up and down with the users' rate …"""

FOLLOWED_AT_A_CHANGING_RATE = 0.1
"""… and then this much is allowed."""

CHANCE = 4.0
"""Standard deviations within which a deviation is chance. Of eight types in a sound run, one in two thousand is beyond;
with three it would be one in fifty, and one experiment of nine runs in six would lose a comparison to nothing."""

ABORTED = 0.01
"""Calls per transaction that the server ended because of others. With too few customers for its users the brokerage
aborted 28 % (reference/brokerage.md): then contention is measured, and work done twice counts as reads."""

LOCKED = 0.20
"""Share of the users' time. Who waits for a lock asks the storage for nothing: at one fifth only four fifths of the
users press on it, and without locks the throughput could be up to 1 / (1 − 0.2) = 1.25 times as high, as much as
DEVICE_FREE lets a device count for. Not less, because the holder of a lock may itself wait for I/O, and those
behind it then wait for the device too."""

OVER_LIMIT = 0.10
"""Share of a type that may take longer than its limit: the limits are of 90th percentiles."""

LATE_START_S = 0.1
"""Mean start delay of what the market and the timers bring. An order is answered after 2 s on average: a twentieth of
that changes how many are under way by as much as we do not report elsewhere."""

QUERY_WAITED_S = 0.1
"""A query that begins later than this after it was due waited for a stream. A stream that is free begins it within
milliseconds, and within tens of them where no core of the machine is."""

BURST = 0.10
BURST_CALLS = 5
"""A second is one of a burst of errors when more than this share of a transaction's calls failed in it, and at least so
many: one or two of a rare transaction are none."""

# What is the bottleneck? ------------------------------------------------------------------------------------

DEVICE_LIMITS = 0.5
DEVICE_FREE = 0.2
"""Share of the users' *progressing* time (neither idle in the client nor queued for another transaction's
lock) spent in I/O and WAL. Those waiting for a lock wait for a holder who is himself progressing, so they add
nothing of their own. By Amdahl's law a device of no latency at all would give at most 1 / (1 − share): above
one half more than everything else together, below one fifth at most 1.25 times the throughput."""

PROGRESS_FLOOR = 0.05
"""Less progressing time than this and the load asks too little of the server to find any bottleneck in it."""

DEVICE_QUEUES = 0.5
"""Busy share below which an I/O is served longer than it queues (M/M/1: the queue is ρ / (1 − ρ) services)."""

DEVICE_BUSY = 0.9
"""Busy share at which queueing is ten times the service. Used for emulated arrays only: a flash device or an
array serves many requests at once and shows 100 % long before it is saturated, and virtual disks call
themselves rotational."""

ABOVE = 0.5
"""Share of the users' time in storage from which it is said to be above the device: more than in the device itself."""

DEVICE_OWN = 0.8
"""Share of the server's I/O stall below which it is worth saying that the device itself was faster than that."""

LOG_SAID = 0.01
LOCKS_SAID = 0.05
"""Shares of the users' time from which a verdict on a device mentions the log and locks: less of the log is written as
0 %, and fewer locks explain no difference that we report."""

CPU_BUSY = 0.9
"""Share of the host's CPUs above which the CPU, not the device, is called the limit."""

CPU_LIMITS = 1 - DEVICE_FREE
"""Share of the host's CPUs from which storage is not called the bottleneck without them. A transaction needs its CPU
time on any storage (utilisation law), so that none gives more than 1 / share of the throughput: from here on at most as
much as a device may count for that is called no limit (DEVICE_FREE)."""

CPU_ALONE = 0.95
"""Share of the host's CPUs from which they alone are called the limit: there no storage gives more than 1 / 0.95, as
much as single runs differ by (SAME)."""

# Can the times be compared? ---------------------------------------------------------------------------------

SCHEDULING_MS = 2.0
SCHEDULING_CPU = 0.7
"""Below 2 ms or above 70 % CPU the server's mean read time is up to twice the device's, because a backend
waits for a CPU after its I/O is done (measured: reference/postgres.md)."""

# Statistics -------------------------------------------------------------------------------------------------

SAMPLES_BEYOND = 10
"""A percentile p is given when 1/(1 − p) · 10 transactions were seen: ten lie beyond it, and their number,
and with it where the percentile lies, is known to about a third (1/√10)."""

SHARE_SAMPLES = 30
"""A share or mean of fewer samples is not shown, whether of sessions or of transactions: one half of 30 is known to 18
points (95 %), and less would say little."""

CORRELATION_PAIRS = 10
"""Fewer pairs of seconds and the 95 % interval spans more than half of all possible values."""

SAME = 0.05
"""Throughputs closer than this are called alike; single runs on one machine differ by 2-5 % on their own."""

MAILBOX_IOPS = 0.12
"""I/Os of data files per mailbox and second, by which I/Os are shown as mailboxes: the profile of Jetstress 2010."""

LOADS_READ = 0.02
"""Share of the server's reads by which the sum of the loads' may differ and still account for them."""
LEAST_DONE = 20
"""Transactions of a load in a step for a rate that is compared with others: those of fewer scatter by more than 22 %,
as independent events do."""
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
"""The highest correlation that 30 batches can tell from 1. A higher one would make any trend one of chance."""

VALUES_MOST = 200
"""Maximum number of values: 200 give a correlation to within 0.07, and half an interval of ten minutes still has its
seconds.
"""

UNSTEADY_P = 0.025
"""The p-value of each of the two tests: together they call one steady interval in twenty unsteady."""

DRIFT = 0.05
"""Change over the measured interval that matters, as a share of the mean. The two halves then differ by half of it, as
much as runs of one variant do on a quiet machine (2-3 %); less is there to be tested in any long run, and harmless."""

DRIFT_UNKNOWN = 0.25
"""The reach of the drift's interval beyond which there was not enough to judge by: five times the drift that matters.
"""

NO_RANGE = 1.0
"""The reach of the drift's interval, a rate that doubled or went to nothing, beyond which the interval is meaningless.
"""

HEAD_ERRORS = 4.0
"""Standard errors by which the beginning must be off the rest to be a warm-up: MSER seeks the cut that makes it lie off
most, and by chance alone finds two or three.
"""

HEAD_MATTERS = DRIFT / 2
"""Shift of the interval's mean by a warm-up inside it that makes figures incomparable: what a drift of DRIFT does."""

# Comparing variants (analysis/compare) -----------------------------------------------------------------------

CONFIDENCE = 0.95
"""The confidence of intervals. A p-value must not exceed 1 − CONFIDENCE: one false verdict in twenty equal pairs."""

POWER = 0.8
"""Probability with which a difference that is there is to be shown: the usual one (J. Cohen, 1988)."""

READS_OF_ONE_RUN = 0.2
"""The same between single runs, whose scatter is unknown: less than this is open. A pool that is still filling makes
them differ by some percent.
"""

READS_AT_ONE_POOL = 0.05
"""Relative difference of physical reads per transaction between sides that have the same buffer pool. They are a matter
of pool and transactions: where they differ, something besides the storage does, and by as much the throughput may."""

AGAIN = 0.02
"""How far the first variant, run again at the end, may be from itself: the run-to-run spread of a quiet machine. Less
is never called a drift, however little the runs scatter. More than SAME always is, however much they do: of several
runs, whose mean scatters less, no more is let pass than of one."""

POOL_REACHED = 0.05
"""Relative difference of buffer pools that were asked for alike. Servers round to their own chunks, and SQL Server's
target moves a little with the machine's free memory; reads per transaction are checked besides."""

CLOCK_JUMP_S = 1.0
"""Between two samples, beyond what lies between them on our clock. Time services slew by 0.5 ms a second and step only
when they are off by more (chrony, ntpd: 0.128 s); a sample may wait as long for a busy server, and a whole second is
what everything per second is counted in."""

# Causes (analysis/cause) -------------------------------------------------------------------------------------

LITTLE_READS = 0.25
"""How far sessions seen reading may be from what the server's counters say. Assumed: counters take in the server's own
processes, and a sampled wait ends when the session runs again, not when its I/O is done. Chosen after eight runs of one
experiment on the embedded server; it closed in all nine fresh ones of an idle machine (benchmarks/causes.py)."""

SERVICE_ACCOUNTED = 0.25
"""The largest difference of an emulated array's busy time from I/Os × service time, which counts no I/O as sequential.
"""

CPU_ACCOUNTED = 0.25
"""Share of the busy cores that need not be sessions or the driver: the kernel's work for an I/O is done while the
session waits for that I/O, and collectors take some percent of a core."""

LAW_FLOOR_USERS = 0.1
"""Less than a tenth of a session, a core or a device busy on average: both sides are scatter and no law is judged."""

CAUSE_MOST = 0.5
CAUSE_LITTLE = 0.2
"""Share of a change in response time. Above one half a part is more than all others together, and is called the cause;
below one fifth it is not a cause (the same bounds as DEVICE_LIMITS and DEVICE_FREE, of a change instead of a level).
"""

RARE = 0.1
"""I/Os that a transaction waits for on one side, relative to the other's. Fewer than a tenth explain nine tenths of the
change by their number alone, and so few are so rarely sampled in sessions that their time would be scatter."""

READS_SAME = 0.1
"""Relative difference of reads per transaction up to which a model of one variant is tested against another: its
prediction takes them to be the same, and would be wrong by as much."""

ASSOCIATION_BIN_S = 5
"""Length of the stretches of which an elasticity is taken. Counters are not sampled on whole seconds, and what is
shared out between two seconds changes less than it did: with stretches of 1 s an elasticity of −0.5 came out as
−0.8 (tests/analysis/test_cause.py)."""

ASSOCIATION_BINS = 30
"""So many of these stretches, and a correlation is of them; fewer, and it is of single seconds, whose scatter only
weakens it."""

MODEL_ERROR = 0.05
"""How far a prediction is taken to be off for every doubling or halving of the read time, relative. Chosen after eight
runs of benchmarks/causes.py on a machine with other work (reads of 4, 1 and 0.2 ms on the embedded server, each
predicted from the others), where the same experiment later was outside in 4 of 6 pairs, by up to 30 %. It held in 6
of 6 pairs of nine fresh runs on an idle one (errors of -6.9 to +2.2 %): it is the model's own error, and not that of a
machine whose other work comes and goes."""


# The counters themselves. ----------------------------------------------------------------------------------

COUNTS_AGREE = 0.02
"""Rates of server and device that differ by less are called equal: their samples are not of the same moments, and only
one of them counts I/O under way at the ends of an interval.
"""

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

# Raw storage (analysis/probe) ------------------------------------------------------------

PROBE_GAIN = 0.25
"""More I/Os per second that twice as many outstanding ones must bring, or storage is saturated. In a closed loop
latency is outstanding I/Os / rate: a quarter more of them per second is paid for by each taking 60 % longer. Disks that
are hit at random gain a little for ever, because ever fewer of them happen to be idle: of n I/Os on c disks
n / (n + c − 1) of all the disks can do (exponential service); less than a quarter from two for each disk on."""

PROBE_SUSTAINED = 0.7
"""Rate × latency over the outstanding I/Os that were asked for. All of them are under way all the time, so it is 1 but
for the time in the program that issues them: it fills 256 KiB to write in 0.1 ms, a fifth of what a fast disk needs for
them. Below this the program or its CPUs were measured."""

PROBE_COLLAPSE = 0.20
"""Loss of I/Os per second against the best with fewer outstanding. A queue that is only longer loses none; within a few
seconds the rates of one disk differ by some percent by themselves."""

PROBE_TAIL = 3.0
"""The factor by which p99 may grow faster than the outstanding I/Os from the knee on. In a fair queue it grows with
them; three times that is a queue in which some I/Os are passed over repeatedly.
"""

PROBE_UNSTABLE = 0.5
"""Share of the step's median rate below which a window is a slump."""
PROBE_SLUMPS = 0.1
"""Share of a step's windows in a slump from which it is unstable. That many cannot be the odd garbage collection."""
PROBE_WINDOW_IOS = 40
"""I/Os that a window needs at the step's mean rate for its slump to be one: of so many independent ones, half is three
standard deviations away. One disk has as many in half a second: its windows are longer."""

PROBE_AT_DEVICE = 0.9
"""Share of a probe's bytes that the device must have counted. It counts those of others too, and some of before and
after the step, so less means that I/O ended above it: in a cache, or compressed."""

PROBE_SMALL_BYTES = 64 * 2**30
"""Controllers of arrays have up to some tens of GiB of memory: a file that is smaller may be answered from it."""

PROBE_DRIFT = 0.10
"""Change of raw storage between two probes that makes what lies between them incomparable. Less is not told from chance
in the seconds a probe has, on disks whose single I/Os scatter by a third of their mean, and a database, which waits for
more than its disks, changes by less."""
PROBE_BATCHES = 20
"""Parts of a step whose rates scatter as the step's own would from one probe to the next: longer than what follows upon
an I/O, and enough for an interval by Student's t that is only a fifteenth wider than by many. Fewer where a
step has fewer windows."""

# The ceiling (ceiling_search.py) ------------------------------------------------------------------------------

CEILING_CONFIRMED = 2
"""The margin by which one outcome of a level must outnumber the other. One look is wrong if other work, a checkpoint or
a cold cache falls into it; two that agree are wrong as often as the square of that.
"""
CEILING_VISITS = 4
"""Looks at a level after which it is final: if it holds in two of four, it cannot be relied on."""

CEILING_BATCHES = 10
"""Parts of a measured interval by which a level is judged: their means scatter as the interval's own would from one to
the next, and Student's t of ten is 15 % wider than of many."""
CEILING_LONGEST = 3
"""A level that is too close to the limit to decide, or of which too little was seen, is measured up to so many times as
long as planned. Its interval is then 1/√3 as wide: what is in the balance even so is so near the ceiling that it may
count as either."""
MATCHED_WITHIN = 0.1
"""The largest difference of a stand-in load from each quantity of a profile. Two trials of one load differed by up to 7
% in their writes, because a checkpoint falls into one and not into the other.
"""
