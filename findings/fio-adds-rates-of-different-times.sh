#!/usr/bin/env bash
# fio shows 2,000 IOPS for four jobs that ran one after the other with 500 each: with group_reporting it adds the I/Os
# of all jobs and divides by the time of the longest job, as if all had begun together. The mean and the maximum of its
# samples, and the bandwidth, are added in the same way, of seconds that were not the same. startdelay, by which jobs
# are staggered to ramp up a load, makes it so, for the summary and the JSON alike: a ramp shows the rate of its last
# step as its mean, and jobs that took turns a multiple of what the storage was ever asked for, with the latencies of a
# storage that was not busy. So a curve of latency over IOPS from such runs is that of a device several times as fast.
# The I/Os and their latencies are right; the time from the first job's start to the last one's end is not told.
#
# Four jobs with 500 IOPS for 4 s each.
# Run with fio 3.33-3 of Debian 12, 2026-11-30:
#   all at once: 7962 reads, fio 1963 IOPS, its samples' mean 1979 and maximum 2230; 1990 over 4 s
#   one after the other: 8000 reads, fio 1996 IOPS, its samples' mean 1998 and maximum 2141; 500 over 16 s
#   a second apart: 7927 reads, fio 1978 IOPS, its samples' mean 1990 and maximum 2068; 1132 over 7 s
# Source: HOWTO of fio, "group_reporting" and "startdelay" (neither tells of the other), and its stat.c (a group's
# runtime is the maximum of its jobs', and samples of jobs are summed). Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install fio=3.33-3
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
cat >"$folder/jobs.py" <<'PYTHON'
import json
import subprocess
import sys

JOBS, SECONDS, RATE = 4, 4, 500
folder = sys.argv[1]
fio = [f"{folder}/root/usr/bin/fio", "--output-format=json", "--group_reporting", f"--filename={folder}/data"]
fio += ["--size=8M", "--bs=8k", "--ioengine=psync", "--thread", "--rw=randread", "--time_based"]
fio += [f"--runtime={SECONDS}", f"--rate_iops={RATE}"]


def run(delays):
    """Return the statistics of the group of jobs, each of which starts after a delay."""
    jobs = [word for number, delay in enumerate(delays) for word in (f"--name=job{number}", f"--startdelay={delay}")]
    output = subprocess.run([*fio, *jobs], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    [group] = json.loads(output[output.index("{") :])["jobs"]
    return group["read"]


as_seen = True
for title, step in (("all at once", 0), ("one after the other", SECONDS), ("a second apart", 1)):
    read = run([number * step for number in range(JOBS)])
    seconds = SECONDS + step * (JOBS - 1)
    real = read["total_ios"] / seconds
    print(
        f"{title}: {read['total_ios']} reads, fio {read['iops']:.0f} IOPS, "
        f"its samples' mean {read['iops_mean']:.0f} and maximum {read['iops_max']}; {real:.0f} over {seconds} s"
    )
    as_seen &= all(abs(rate / (JOBS * RATE) - 1) < 0.15 for rate in (read["iops"], read["iops_mean"]))
    as_seen &= (real < 0.65 * JOBS * RATE) == (step > 0)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/jobs.py" "$folder"
