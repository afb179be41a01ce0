#!/usr/bin/env bash
# vmtouch and fincore show a file of another user as wholly in the page cache when none of it is: 100 % of a file that
# the device then reads to the last byte, beside 0 % of a copy that is the user's own. Since 5.2 Linux answers mincore,
# by which these tools look, with "resident" for each page, if whoever asks neither owns the file nor may write it, and
# the figure is as round and as final as a real one; vmtouch of Debian 12 warns of nothing. It is the case of whoever
# may only read: a monitoring user in the group of a PostgreSQL cluster with group access, one for backups, an agent
# that is not root on the volume of a database. By that all of the database is in memory, before and after a restart: a
# test with a cold cache is thought to be warm, a server whose memory is short to have enough, and a reader of whole
# databases to have done no harm, where the owner sees the real share with the same command.
#
# A file below /usr and a copy of it, both put out of the cache by posix_fadvise, looked at by nobody, if this is root.
# Run with vmtouch 1.3.1-2 and fincore of util-linux 2.38.1 of Debian 12, on ext4, Linux 6.18, 2026-11-30:
#   another's file, 8.4 MB: in the cache by vmtouch 100%, fincore 100%; 100% read from the device
#   the user's own, 8.4 MB: in the cache by vmtouch 0%, fincore 0%; 100% read from the device
# Source: can_do_mincore in mm/mincore.c of Linux; mincore(2) of the manual pages 6.03 and vmtouch(8), which do not tell
# it; issue 74 of vmtouch, after which a warning was written that later versions have in verbose mode. Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root" "$folder/own"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install vmtouch=1.3.1-2
dpkg -x "$folder"/debs/vmtouch_*.deb "$folder/root"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/own"

cat >"$folder/cached.py" <<'PYTHON'
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

folder = sys.argv[1]


def evict(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def device_share(path):
    """Read the file, and return the share of its bytes that came from a device."""

    def read_bytes():
        return int(re.search(r"^read_bytes: (\d+)", Path("/proc/self/io").read_text(), re.MULTILINE)[1])

    before = read_bytes()
    size = len(Path(path).read_bytes())
    return (read_bytes() - before) / size


def shown(path):
    """The share in the cache that each tool shows."""
    vmtouch = subprocess.run([f"{folder}/root/usr/bin/vmtouch", path], stdout=subprocess.PIPE, text=True, check=True)
    pages, all_pages = map(int, re.search(r"Resident Pages: (\d+)/(\d+)", vmtouch.stdout).groups())
    shares = {"vmtouch": pages / all_pages}
    if shutil.which("fincore"):
        fincore = ["fincore", "--bytes", "--raw", "--noheadings", "--output", "RES,SIZE", path]
        cached, size = map(int, subprocess.run(fincore, stdout=subprocess.PIPE, text=True, check=True).stdout.split())
        shares["fincore"] = min(1, cached / size)  # it counts the last page whole
    return shares


def foreign_file():
    """A file of another user, of 4 to 80 MB, that nobody keeps in the cache."""
    for directory, _, names in os.walk("/usr"):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.islink(path) or not 4e6 < os.path.getsize(path) < 80e6 or os.access(path, os.W_OK):
                continue
            if os.stat(path).st_uid != os.getuid() and os.access(path, os.R_OK):
                evict(path)
                if device_share(path) > 0.99:
                    return path
    sys.exit("No file of another user is read from a device.")


foreign, own = foreign_file(), f"{folder}/own/copy"
shutil.copyfile(foreign, own)
with open(own, "rb") as file:
    os.fsync(file.fileno())
seen = []
for title, path in (("another's file", foreign), ("the user's own", own)):
    evict(path)
    shares = shown(path)
    from_device = device_share(path)
    seen.append((set(shares.values()), from_device > 0.99))
    tools = ", ".join(f"{tool} {share:.0%}" for tool, share in shares.items())
    size_mb = os.path.getsize(path) / 1e6
    print(f"{title}, {size_mb:.1f} MB: in the cache by {tools}; {from_device:.0%} read from the device")
sys.exit(0 if seen == [({1}, True), ({0}, True)] else "This has changed.")
PYTHON
"${as[@]}" python3 "$folder/cached.py" "$folder"
