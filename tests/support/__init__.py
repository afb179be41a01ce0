"""Helpers that tests of several rooms share."""

import os
import sys

# Modules are compiled once, whatever the environment says, and not by each of the processes that tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
