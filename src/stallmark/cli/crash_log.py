"""The log of an error that Stallmark did not foresee: what a maintainer needs, without secrets."""

import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

import stallmark
from stallmark.redact import without_secrets


def write(error: BaseException) -> Path | None:
    """Write the log and return its path: in the user's folder of logs, or where that cannot be, a temporary one. None
    where neither can."""
    at = datetime.now(UTC)
    text = without_secrets(
        f"stallmark {stallmark.__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"{at:%Y-%m-%d %H:%M:%S} UTC: {' '.join(sys.argv)}\n\n{''.join(traceback.format_exception(error))}"
    )
    name = f"error-{at:%Y%m%d-%H%M%S}-{os.getpid()}.log"
    for folder in (Path(platformdirs.user_log_dir("stallmark")), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.touch(0o600, exist_ok=False)
            path.write_text(text)
            return path
        except OSError:
            continue
    return None
