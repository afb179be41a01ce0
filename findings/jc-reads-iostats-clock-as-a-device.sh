#!/usr/bin/env bash
# jc reads iostat's clock as a device: with -t, as iostat is started by whoever compares it with a database later, each
# report after the first brings a device by the name of the date, whose I/Os per second are the digits of the time:
# 215,227 at 21:52:27. With -h the numbers lose their unit (7.9M and 7.9k are both 7.9), and those of devices get the
# names of CPU states, since a device's name comes last there: 1,529 I/Os per second are 1,529 % of user time. Nothing
# warns, and all of them are numbers, so that the maximum over devices is the clock. The times of the reports are lost,
# and so is which report is the first, the mean since the system was started.
#
# iostat runs here for three reports; what is printed is what jc makes of each device.
# Run with jc 1.26.1 and sysstat 12.6.1-1 of Debian 12, 2026-11-29:
#   iostat -d: 0 devices that are none
#   iostat -t: 2 devices that are none, of three reports, named like 11/29/26, with 215227 I/Os per second at 21:52:27
#   iostat -h: 0 devices; a line of a device with 1.5k kB_read/s has percent_nice 1.5
# Source: documentation of jc, "jc.parsers.iostat" (no limits on options), and iostat(1). Needs apt-get.
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
apt --no-install-recommends --download-only -y install sysstat=12.6.1-1
dpkg -x "$folder"/debs/sysstat_*.deb "$folder/root"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jc==1.26.1
iostat() { LC_ALL=C "$folder/root/usr/bin/iostat" "$@"; }
iostat -d 1 3 >"$folder/plain.txt"
iostat -t 1 3 >"$folder/timed.txt"
iostat -h 1 1 >"$folder/units.txt"
cat >"$folder/devices.py" <<'PYTHON'
import re
import sys
from pathlib import Path

import jc

folder = Path(sys.argv[1])
as_seen = True
for name, option in (("plain", "-d"), ("timed", "-t")):
    text = folder.joinpath(f"{name}.txt").read_text()
    real = set(re.findall(r"^(\w+) +[\d.]+ +[\d.]+ ", text, re.M))
    rows = [row for row in jc.parse("iostat", text, quiet=True) if row["type"] == "device"]
    others = [row for row in rows if row["device"] not in real]
    print(f"iostat {option}: {len(others)} devices that are none", end="")
    if others:
        clock = re.findall(rf"^{re.escape(others[0]['device'])} (\S+)", text, re.M)[1]
        print(f", of three reports, named like {others[0]['device']}, with {others[0]['tps']:.0f} I/Os per second at {clock}")
        as_seen &= others[0]["tps"] == float(clock.replace(":", ""))
    else:
        print()
    as_seen &= len(rows) - len(others) == 3 * len(real) and len(others) == (2 if name == "timed" else 0)
text = folder.joinpath("units.txt").read_text()
rows = jc.parse("iostat", text, quiet=True)
devices = [row for row in rows if row["type"] == "device"]
[[tps, read], *_] = re.findall(r"^ +([\d.]+) +([\d.]+[kMGT]) .*[kMGT] \w+$", text, re.M)
[line] = [row for row in rows if row.get("percent_user") == float(tps) and row.get("percent_nice") == float(read[:-1])][:1]
print(f"iostat -h: {len(devices)} devices; a line of a device with {read} kB_read/s has percent_nice {line['percent_nice']}")
sys.exit(0 if as_seen and not devices else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/devices.py" "$folder"
