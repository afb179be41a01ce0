"""Microsoft's own T-SQL parser: the SQL Tools Service, a program that answers JSON-RPC on its standard streams.

It knows the grammar of SQL Server 2019, and is in the wheel `mssql-cli` 1.0.0, which pins a `click` that Locust does
not take. So `make packages` only unpacks that wheel, and with it the last `psycopg2-binary` that has the OpenSSL 1.1
which the program wants.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

UNPACKED = Path(sys.prefix) / "tsql-parser"
PROGRAM = UNPACKED / "mssqlcli/mssqltoolsservice/bin/MicrosoftSqlToolsServiceLayer"
ANSWERS_WITHIN_S = 60


class ToolsService:
    """`with ToolsService() as parser: parser.errors("SELECT 1")`."""

    def __init__(self, program: Path = PROGRAM):
        self._program = program
        self._numbers = itertools.count(1)

    def __enter__(self) -> "ToolsService":
        self._folder = tempfile.TemporaryDirectory()
        own = {
            "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",  # without ICU on the machine it would not start
            "LD_LIBRARY_PATH": str(UNPACKED / "psycopg2_binary.libs"),
            "TMPDIR": self._folder.name,  # it leaves debugger pipes behind
        }
        self._process = subprocess.Popen(
            [self._program, "--log-file", f"{self._folder.name}/log"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | own,
        )
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def errors(self, text: str) -> list[str]:
        """Return the errors of a script; GO separates its batches. Raises EOFError when the program ended."""
        number = str(next(self._numbers))
        watchdog = threading.Timer(ANSWERS_WITHIN_S, self._process.kill)
        watchdog.start()
        try:
            self._send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "query/syntaxparse",
                    "params": {"OwnerUri": "stallmark", "Query": text},
                }
            )
            while (answer := self._receive()).get("id") != number:
                pass  # a notification
        finally:
            watchdog.cancel()
        result = answer["result"]
        return result["errors"] or []

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        body = json.dumps(message).encode()
        with contextlib.suppress(BrokenPipeError):  # its end is seen by `_receive`
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout and self._process.stderr
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            last_words = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            raise EOFError(last_words[0] if last_words else "it ended without a word")
        body = self._process.stdout.read(length)
        if len(body) < length:
            raise EOFError("it ended within an answer")
        return json.loads(body)
