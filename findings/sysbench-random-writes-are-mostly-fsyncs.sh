#!/usr/bin/env bash
# More than half of the events of sysbench's random writes are fsyncs, and nearly half of those have nothing to write.
# By default fileio fsyncs each of its 128 files after every 100 writes, and an fsync is an event like a write: it is
# counted in the total, in the events per second and in the latencies, of which there is one average and one percentile
# for both. So these are neither a write's nor an fsync's. How many fsyncs there are depends on --file-num and not on
# the load: on one file of the same size the same test has one for 100 writes, in place of 128, and results with other
# numbers of files are of other tests. An fsync of a file that no write has met since the last one returns at once, and
# makes the latencies look better.
#
# 20,000 events each, on 64 MB; what sysbench calls is counted in a library.
# Run with sysbench 1.0.20+ds-5 of Debian 12, 2026-11-29:
#   128 files: 8800 writes, 11200 fsyncs in the latencies, of which 54% of a file that was written to since the last
#   1 file: 19802 writes, 198 fsyncs in the latencies, of which 100% of a file that was written to since the last
#   128 files, --file-fsync-freq=0: 20000 writes, 0 fsyncs in the latencies
# Source: sysbench's own help, "file-fsync-freq" (fsync() after this number of requests; nothing on the files, nor on
# the latencies). Needs apt-get and a C compiler.
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
apt --no-install-recommends --download-only -y install sysbench=1.0.20+ds-5
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu

# What sysbench calls, noted for each file: whether it was written to since its last fsync.
cat >"$folder/calls.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dirty[4096];
static long writes, syncs, needed;

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
    dirty[file] = 1;
    writes++;
    return next(file, data, size, place);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) { return pwrite64(file, data, size, place); }

int fsync(int file) {
    static int (*next)(int);
    if (!next) next = dlsym(RTLD_NEXT, "fsync");
    syncs++;
    needed += dirty[file];
    dirty[file] = 0;
    return next(file);
}

__attribute__((destructor)) static void print(void) {
    FILE *out = writes ? fopen(getenv("CALLS"), "w") : NULL;  // timeout is asked too
    if (!out) return;
    fprintf(out, "%ld %ld %ld\n", writes, syncs, needed);
    fclose(out);
}
C
cc -shared -fPIC -O1 -o "$folder/calls.so" "$folder/calls.c" -ldl
run() { LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib" timeout 80 "$@"; }

status=0
# Prints the events of a test by kind. The first fsync of each file, before the test, is none of its events.
events() {
    local title=$1 files=$2 least=$3 most=$4 writes syncs needed total
    shift 4
    mkdir "$folder/files"
    cd "$folder/files"
    local options=(fileio --file-total-size=64M --file-num="$files" --file-test-mode=rndwr --file-fsync-end=off)
    run "$folder/root/usr/bin/sysbench" "${options[@]}" prepare >/dev/null
    CALLS="$folder/calls" LD_PRELOAD="$folder/calls.so" run "$folder/root/usr/bin/sysbench" "${options[@]}" \
        --time=0 --events=20000 "$@" run >"$folder/output"
    read -r writes syncs needed <"$folder/calls"
    cd "$folder"
    rm -r "$folder/files"
    total=$(awk '/total number of events/ {print $NF}' "$folder/output")
    syncs=$((total - writes))
    printf "%s: %d writes, %d fsyncs in the latencies" "$title" "$writes" "$syncs"
    [ "$syncs" = 0 ] || printf ", of which %d%% of a file that was written to since the last" $((100 * needed / syncs))
    echo
    [ "$total" = 20000 ] && [ "$syncs" -ge "$least" ] && [ "$syncs" -le "$most" ] || status=1
}
events "128 files" 128 10500 12000
events "1 file" 1 150 250
events "128 files, --file-fsync-freq=0" 128 0 0 --file-fsync-freq=0
[ $status = 0 ] || echo "This has changed."
exit $status
