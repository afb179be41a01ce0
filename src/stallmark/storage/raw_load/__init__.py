"""Raw loads: `fio` reads or writes files of its own next to the database during a run."""
