"""The run record: what a run leaves behind, and all that reports are made from."""
