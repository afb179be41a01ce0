"""Microsoft's own T-SQL parser: the SQL Tools Service, a program that answers JSON-RPC on its standard streams.

It is in the wheel `mssql-cli` 1.0.0 and knows the grammar of SQL Server 2019. That package pins a `click` which
Locust does not take, so it is no dependency of ours: unpack the wheel anywhere and name the program,

    STALLMARK_SQLTOOLSSERVICE=…/mssqlcli/mssqltoolsservice/bin/MicrosoftSqlToolsServiceLayer

The program wants OpenSSL 1.1 or 1.0. Where the system has only a later one, name a script of two lines instead that
sets LD_LIBRARY_PATH to a folder with libssl.so.1.1 and libcrypto.so.1.1 and then runs the program.
"""

import contextlib
import functools
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

VARIABLE = "STALLMARK_SQLTOOLSSERVICE"
ANSWERS_WITHIN_S = 60


class ToolsService:
    """`with ToolsService(path) as parser: parser.errors("SELECT 1")`."""

    def __init__(self, program: str | Path):
        self._program = program
        self._numbers = itertools.count(1)

    def __enter__(self) -> "ToolsService":
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [self._program, "--log-file", f"{self._folder.name}/log"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Without ICU on the machine it would not start; TMPDIR: it leaves debugger pipes behind.
            env=os.environ | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "TMPDIR": self._folder.name},
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
            said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
            raise EOFError(said[0] if said else "it said nothing")
        body = self._process.stdout.read(length)
        if len(body) < length:
            raise EOFError("it ended within an answer")
        return json.loads(body)


def find() -> str | None:
    """The program, or what runs it."""
    named = os.environ.get(VARIABLE)
    return named or shutil.which("MicrosoftSqlToolsServiceLayer")


@functools.cache
def missing() -> str | None:
    """Say what keeps Microsoft's parser from working here; None: it does."""
    program = find()
    if program is None:
        return f"Microsoft's T-SQL parser is not here: {VARIABLE} names no program (tests/support/tsql/)."
    try:
        with ToolsService(program) as parser:
            parser.errors("SELECT 1")
    except (OSError, EOFError) as error:
        return f"Microsoft's T-SQL parser does not run ({program}: {error})."
    return None
