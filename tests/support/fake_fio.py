"""A program in fio's place: each step has 1,000 I/Os for each that is outstanding."""

import sys

import pytest

FAKE = f"""#!{sys.executable}
import json, os, sys, time
asked = dict(option[2:].split("=", 1) for option in sys.argv[1:] if "=" in option)
if "--version" in sys.argv:
    print("fio-3.99")
elif os.environ.get("FAIL"):
    sys.exit(os.environ["FAIL"])
elif os.environ.get("ENDLESS"):
    open("pid", "w").write(str(os.getpid()))
    time.sleep(600)
else:
    threads = int(asked["numjobs"]) * int(asked["iodepth"])
    ios = 1000 * threads
    times = dict(mean=1e6, bins={{"1000000": ios}})
    done = dict(io_bytes=ios * 8192, runtime=1000, total_ios=ios, lat_ns=times, clat_ns=times)
    json.dump(dict(jobs=[dict(error=0, read=done, write=done)]), open(asked["output"], "w"))
    open("preload", "w").write(os.environ.get("LD_PRELOAD", "none"))
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path
