"""The run record: the folder that a run leaves, from which all reports are made."""
