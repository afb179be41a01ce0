#!/usr/bin/env bash
# The same 1,000 commits to SQLite flush its log 1,000 times by Python (apsw) and not once by Go, in WAL mode:
# go-sqlite3, the usual driver there, sets synchronous=NORMAL in each connection that it opens, in place of SQLite's
# default, FULL, and is built so as well. Its README lists "_synchronous" among the options, without the default. The
# few flushes that are left belong to checkpoints, one after 1,000 pages. So the device has no part in a commit by Go,
# however slow it is, and by Python it is nearly all of it: two programs on one disk, or a service before and after it
# is written anew, differ by the storage's latency, and the language gets the credit. What measures storage through
# SQLite measures flushes by one driver and writes to memory by the other, and what was committed after the last
# checkpoint is gone with the power. With a journal that is deleted Go has three flushes for Python's four, so that WAL
# is worth four times fewer flushes in one language and hundreds of times fewer in the other. better-sqlite3 of Node is
# built for NORMAL in WAL mode too (not run), and its documentation tells.
#
# Flushes are counted in a library, for rows that are inserted in a transaction each.
# Run with apsw 3.54.1.0 and go-sqlite3 1.14.53, built by Go 1.26, on Debian 12, 2026-11-30:
#   Python, WAL: 1012 flushes for 1000 commits, synchronous 2 of SQLite 3.54.1
#   Go, WAL: 8 flushes for 1000 commits, synchronous 1 of SQLite 3.54.1
#   Python, DELETE: 4004 flushes for 1000 commits, synchronous 2 of SQLite 3.54.1
#   Go, DELETE: 3003 flushes for 1000 commits, synchronous 1 of SQLite 3.54.1
# Source: sqlite3.go of go-sqlite3 (SQLITE_DEFAULT_WAL_SYNCHRONOUS=1 for the compiler, and Open) and its README; SQLite's
# documentation, "PRAGMA synchronous". Needs go and a C compiler.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apsw==3.54.1.0
# The compiler's own cache is kept, for without it the build takes longer than all else.
export GOMODCACHE="$folder/modules" GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
mkdir "$folder/go"
cat >"$folder/go/go.mod" <<'GO'
module commits

go 1.22

require github.com/mattn/go-sqlite3 v1.14.53
GO
cat >"$folder/go/commits.go" <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	connection, err := sql.Open("sqlite3", os.Args[1])
	must(err)
	connection.SetMaxOpenConns(1)
	var synchronous, version string
	for _, statement := range os.Args[2:] {
		_, err = connection.Exec(statement)
		must(err)
	}
	for number := range 1000 {
		_, err = connection.Exec("INSERT INTO orders VALUES (?, ?)", number, "note")
		must(err)
	}
	must(connection.QueryRow("PRAGMA synchronous").Scan(&synchronous))
	must(connection.QueryRow("SELECT sqlite_version()").Scan(&version))
	fmt.Println(synchronous, version)
}
GO
cat >"$folder/commits.py" <<'PYTHON'
import sys

import apsw

connection = apsw.Connection(sys.argv[1])
for statement in sys.argv[2:]:
    connection.execute(statement)
for number in range(1000):
    connection.execute("INSERT INTO orders VALUES (?, ?)", (number, "note"))
print(connection.pragma("synchronous"), apsw.sqlite_lib_version())
PYTHON
cat >"$folder/flushes.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int flush(const char *name, int file) {
    int (*next)(int) = dlsym(RTLD_NEXT, name);
    int flushes = open(getenv("FLUSHES"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(flushes, "x", 1) != 1) abort();
    close(flushes);
    return next(file);
}

int fdatasync(int file) { return flush("fdatasync", file); }
int fsync(int file) { return flush("fsync", file); }
C
cc -O1 -shared -fPIC -o "$folder/flushes.so" "$folder/flushes.c" -ldl
# Without optimisation SQLite is built in a quarter of the time.
(cd "$folder/go" && CGO_ENABLED=1 CGO_CFLAGS=-O0 go build -o ../go-commits . 2>../log) || { cat "$folder/log" && exit 1; }

as_seen=true
for journal in WAL DELETE; do
    for language in Python Go; do
        program=("$folder/venv/bin/python" "$folder/commits.py")
        [ $language = Python ] || program=("$folder/go-commits")
        rm -f "$folder"/flushes "$folder"/orders*
        read -r synchronous version < <(
            LD_PRELOAD="$folder/flushes.so" FLUSHES="$folder/flushes" "${program[@]}" "$folder/orders" \
                "PRAGMA journal_mode = $journal" "CREATE TABLE orders (id, note)"
        )
        flushes=$(wc -c <"$folder/flushes")
        echo "$language, $journal: $flushes flushes for 1000 commits, synchronous $synchronous of SQLite $version"
        case $language-$journal in
        Python-WAL) ((flushes >= 1000 && flushes < 1100 && synchronous == 2)) || as_seen=false ;;
        Go-WAL) ((flushes < 50 && synchronous == 1)) || as_seen=false ;;
        Python-DELETE) ((flushes >= 4000 && synchronous == 2)) || as_seen=false ;;
        Go-DELETE) ((flushes >= 3000 && flushes < 3500 && synchronous == 1)) || as_seen=false ;;
        esac
    done
done
$as_seen || { echo "This has changed." && exit 1; }
