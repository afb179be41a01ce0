"""The controller's merging of what is reported: it writes into the record, and counts."""

from collections import Counter

from stallmark.driver.row_merger import RowMerger
from stallmark.driver.rows import Rows
from stallmark.driver.warm_up import SecondsSeen
from stallmark.errors import as_reason
from stallmark.record.writer import RecordWriter


class Merger(RowMerger):
    """A merger that writes into the record, and counts what has come."""

    def __init__(self, writer: RecordWriter):
        super().__init__()
        self.writer = writer
        self.seen = SecondsSeen()
        self.errors = 0
        self.committed: Counter[tuple[str, str]] = Counter()
        """Transactions by load and name."""
        self.given_up: Counter[tuple[str, str, str]] = Counter()
        """Transactions that were not tried again, by load, name and the server's words."""

    def add(self, reported: Rows) -> None:
        super().add(reported)
        for row in reported.transactions:
            self.seen.add(row)
            self.committed[row.load, row.transaction] += row.committed
        for error in reported.errors:
            self.errors += error.attempts
            self.given_up[error.load, error.transaction, f"{as_reason(error.message)} ({error.code})"] += error.given_up

    def write_before(self, second: float) -> None:
        """Write and forget the rows of all seconds before `second`."""
        rows = self.take_before(second)
        for table in Rows.__struct_fields__:
            self.writer.append(table, [row.columns() for row in getattr(rows, table)])
