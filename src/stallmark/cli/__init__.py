"""The command `stallmark`: one file for each command."""
