#!/usr/bin/env bash
# Microsoft's ODBC driver for SQL Server takes the whole login timeout for a port that nobody listens on, and then calls
# it "Login timeout expired": the system refused the connection within a millisecond, and the driver asked again until
# the time was over. ConnectRetryCount=0 changes nothing, as it is for connections that were lost. So a wrong port and a
# stopped server look like a slow one or a firewall, and who waits longer, waits longer for the same answer.
#
# Run with pyodbc 5.5.0 and mssql-python-odbc 18.6.2.2 (libmsodbcsql-18.6.so.2.1), on Debian 12, 2026-11-28:
#   a plain connection: refused True, within 10 ms
#   timeout 3 s: 3 s, HYT00, Login timeout expired
#   timeout 3 s;ConnectRetryCount=0: 3 s, HYT00, Login timeout expired
#   timeout 9 s: 9 s, HYT00, Login timeout expired
#   timeout 9 s;ConnectRetryCount=0: 9 s, HYT00, Login timeout expired
# Source: Microsoft, "Connection resiliency in the ODBC driver" (ConnectRetryCount is about idle connections).
# Needs libodbc2 and libgssapi-krb5-2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyodbc==5.5.0 mssql-python-odbc==18.6.2.2
"$folder/venv/bin/python" - <<'PYTHON'
import errno
import glob
import platform
import socket
import sys
import time

import pyodbc

pattern = f"{sys.prefix}/lib/python3*/site-packages/*/libs/linux/debian_ubuntu/{platform.machine()}/lib/libmsodbcsql-*"
[driver] = glob.glob(pattern)
with socket.socket() as taken:  # bound and not listening: nobody else gets the port, and a connection is refused
    taken.bind(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    began = time.monotonic()
    with socket.socket() as plain:
        refused = plain.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
    print(f"a plain connection: refused {refused}, within {'10 ms' if time.monotonic() - began < 0.01 else 'more'}")
    as_seen = refused
    for seconds in (3, 9):
        for option in ("", ";ConnectRetryCount=0"):
            began = time.monotonic()
            try:
                pyodbc.connect(
                    f"Driver={driver};Server=127.0.0.1,{port};UID=nobody;PWD=none{option}", timeout=seconds
                )
                state, words = "connected", ""
            except pyodbc.Error as error:
                state, words = error.args
            took = time.monotonic() - began
            told = "Login timeout expired" if "Login timeout expired" in words else words
            print(f"timeout {seconds} s{option}: {took:.0f} s, {state}, {told}")
            as_seen &= state == "HYT00" and seconds - 1 <= took <= seconds + 2 and told == "Login timeout expired"
sys.exit(0 if as_seen else 1)
PYTHON
