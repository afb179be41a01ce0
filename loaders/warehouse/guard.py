"""Run a generator into a temporary folder, and remove it with all that is in it as soon as our input ends.

Whoever started us closes that input when the files are read, and the kernel does it when that process is killed: a
loader that fails or is stopped leaves nothing behind. A program of its own that imports nothing of ours, because it
starts once for each batch. The arguments are the generator's; it writes into the folder it gets as `--output-dir`.
Its name has our number, by which one that a kill has left is known.
When that has ended, one line of JSON says so: `folder`, `code`, `stderr`; `generator.Ended` is its counterpart.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the loader, and that ends our input
    with tempfile.TemporaryDirectory(prefix=f"stallmark-warehouse-{os.getpid()}-") as folder:
        generator = subprocess.Popen(
            [*sys.argv[1:], f"--output-dir={folder}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        ended = threading.Thread(target=_kill_when_input_ends, args=[generator], daemon=True)
        ended.start()
        _, stderr = generator.communicate()
        answer = {"folder": folder, "code": generator.returncode, "stderr": stderr}
        try:
            print(json.dumps(answer), flush=True)
        except BrokenPipeError:
            pass  # nobody is left to read it
        ended.join()


def _kill_when_input_ends(generator: subprocess.Popen) -> None:
    sys.stdin.read()
    generator.kill()


if __name__ == "__main__":
    main()
