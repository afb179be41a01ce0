#!/usr/bin/env bash
# sysbench's OLTP tests leave nearly half of their table unread, and three of four look-ups are in one hundredth of it,
# side by side. By default (rand-type=special) 75 % of the keys are in 1 % of the range, in its middle, and the others
# are not spread over the rest: each is the mean of twelve uniform numbers, a bell over the same middle. So a table of
# ten times the memory is a test of memory: a cache of a tenth of the pages answers five of six look-ups, where it would
# answer one in ten of uniform keys, and storage gets a fifth of the reads. As the hot keys are neighbours, they share
# their pages; a service with as few hot rows has them all over its table. With rand-type=pareto, by which four fifths
# of the look-ups are in one fifth of the table, one of five is of the first row. A larger --table-size changes little,
# since all are shares, and its results beside those of pgbench, whose keys are uniform, compare two loads.
#
# 200,000 keys of a table of 100,000 rows, 100 to a page, through a cache that drops what was read longest ago.
# Run with sysbench 1.0.20+ds-5 of Debian 12, 2026-11-30:
#   special: 43% of the pages unread, 76% of look-ups in 1% of them, 0% of one row; 83% found by a cache of a tenth
#   pareto: 0% of the pages unread, 53% of look-ups in 1% of them, 20% of one row; 64% found by a cache of a tenth
#   uniform: 0% of the pages unread, 1% of look-ups in 1% of them, 0% of one row; 10% found by a cache of a tenth
# Source: sysbench's own help, "rand-type" (special by default), "rand-spec-pct" and "rand-spec-res" (nothing on the
# other keys), and sb_rand_special in its sb_rand.c. Needs apt-get.
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
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
echo 'function event() print(sysbench.rand.default(1, 100000)) end' >"$folder/keys.lua"
for kind in special pareto uniform; do
    option=(--rand-type=$kind)
    [ $kind != special ] || option=() # it is the default
    "$folder/root/usr/bin/sysbench" "${option[@]}" --time=0 --events=200000 --verbosity=0 "$folder/keys.lua" run |
        grep -E '^[0-9]+$' >"$folder/$kind"
done
cat >"$folder/pages.py" <<'PYTHON'
import sys
from collections import Counter, OrderedDict

PAGES, ROWS = 1000, 100
as_seen = True
for kind in ("special", "pareto", "uniform"):
    rows = [int(line) for line in open(f"{sys.argv[1]}/{kind}")]
    pages = [row // ROWS for row in rows]
    [(_, row_count)] = Counter(rows).most_common(1)
    single = row_count / len(rows)
    most = sum(count for _, count in Counter(pages).most_common(PAGES // 100)) / len(pages)
    cache, hits = OrderedDict(), 0
    for place, page in enumerate(pages):
        if page in cache:
            hits += place >= len(pages) // 2
            cache.move_to_end(page)
        else:
            cache[page] = True
            if len(cache) > PAGES // 10:
                cache.popitem(last=False)
    unread, answered = 1 - len(set(pages)) / PAGES, hits / (len(pages) - len(pages) // 2)
    print(
        f"{kind}: {max(0, unread):.0%} of the pages unread, {most:.0%} of look-ups in 1% of them, "
        f"{single:.0%} of one row; {answered:.0%} found by a cache of a tenth"
    )
    if kind == "special":
        as_seen &= unread > 0.35 and most > 0.7 and answered > 0.75
    elif kind == "pareto":
        as_seen &= 0.18 < single < 0.22 and most > 0.5 and answered > 0.55
    else:
        as_seen &= unread <= 0 and most < 0.03 and answered < 0.15
    as_seen &= len(pages) == 200_000
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/pages.py" "$folder"
