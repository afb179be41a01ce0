"""The command `stallmark` from its first moment on: Ctrl-C is heard before anything large is imported."""

import gc
import sys
from contextlib import suppress

from stallmark.stopping import StopSignal, deafen, later, listen


def main() -> None:
    try:
        listen()
        # A signal during an import may look like a missing package to the module that imports it.
        with later():
            from stallmark.cli.main import main as command
        command()
    except StopSignal as stopped:  # before its command had begun
        text = f"{stopped}."
        with suppress(OSError):  # nobody may be left to read it
            print(text[0].upper() + text[1:], file=sys.stderr, flush=True)
        sys.exit(stopped.exit_code)
    finally:
        deafen()  # the interpreter takes a moment to end
        # The interpreter's last search for garbage takes half as long as all imports. If DuckDB is imported, it must
        # happen: DuckDB would print all of its objects.
        if "duckdb" not in sys.modules:
            gc.freeze()


if __name__ == "__main__":
    main()
