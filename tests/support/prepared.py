"""Commands in processes of their own that import nothing: each is forked from one that has imported what they need."""

import json
import multiprocessing
import os
import socket
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.reduction import DupFd
from pathlib import Path
from threading import Thread

import psutil

from support.waiting import TIMEOUT_S

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "stallmark.analysis.experiment", "stallmark.cli.main", "stallmark.experiment.storage_work",
        "stallmark.experiment.remaining_runs", "stallmark.experiment.runner", "stallmark.live.server",
        "stallmark.machines.serving", "stallmark.cli.output", "stallmark.report.experiment",
    ]
)  # fmt: skip


class Prepared(psutil.Process):
    """A `stallmark` that was started in a session of its own."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        output: int,
        errors: int,
        stdin: int | None = None,
    ):
        with open(os.devnull) as nothing:
            streams = tuple(map(_Stream, (nothing.fileno() if stdin is None else stdin, output, errors)))
            told = (arguments, folder, dict(environment), streams)
            self._process = _processes.Process(target=_become, args=told, daemon=True)
            self._process.start()
        super().__init__(self._process.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, f"still running after {timeout} s"
        return code


class _Stream:
    """A descriptor that the process gets."""

    def __init__(self, number: int):
        self.number = number

    def __getstate__(self) -> DupFd:
        return DupFd(self.number)

    def __setstate__(self, sent: DupFd) -> None:
        self.number = sent.detach()


def _become(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str], streams: tuple[_Stream, ...]
) -> None:
    from stallmark.cli.main import main

    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, given in enumerate(streams):
        os.dup2(given.number, descriptor)
        os.close(given.number)
    sys.stdin = os.fdopen(0)  # multiprocessing has closed it
    main.main(arguments, "stallmark")


_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as test:
    test.connect({address!r})
    socket.send_fds(test, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    sys.exit(int(test.recv(9)))
"""


@contextmanager
def prepared_program(path: Path) -> Iterator[None]:
    """Write the program `stallmark` for a shell: who calls it has a `Prepared` with the caller's arguments, folder,
    environment and streams, and its exit code."""
    address = f"\0stallmark-{uuid.uuid4().hex}"
    path.write_text(_PROGRAM.format(python=sys.executable, address=address))
    path.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as calls:
        calls.bind(address)
        calls.listen()
        serving = Thread(target=_serve, args=[calls])
        serving.start()
        yield
        calls.shutdown(socket.SHUT_RDWR)
        serving.join()


def _serve(calls: socket.socket) -> None:
    while True:
        try:
            caller, _ = calls.accept()
        except OSError:  # it is over
            return
        with caller:
            told, streams, *_ = socket.recv_fds(caller, 1 << 16, 3)
            arguments, folder, environment = json.loads(told)
            stdin, output, errors = streams
            process = Prepared(tuple(arguments), Path(folder), environment, output, errors, stdin)
            for stream in streams:
                os.close(stream)
            caller.send(str(process.wait(TIMEOUT_S)).encode())
