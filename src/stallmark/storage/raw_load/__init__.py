"""Raw loads: `fio` reads or writes files of its own beside the database, for as long as a run lasts."""
