"""The bank: one short transaction that updates three rows and inserts one, as TPC-B and pgbench have it.

Derived from TPC-B, and not comparable with published TPC results: no audit, no think time rule, no scaling of branches
with throughput. It shows how fast a server commits small writes over random pages.
"""

from stallmark.transactions.bank.transfer import Transfer
from stallmark.transactions.workload import Condition, UserLoad, Workload, WorkloadContext


def _share(around: WorkloadContext) -> range:
    return around.part(around.scale["branches"])


WORKLOAD = Workload(
    name="bank",
    version=1,
    schema="bank",
    tables="stallmark.schema.bank.tables",
    conditions=Condition.read_all(__name__),
    package=__name__,
    cells_by="branches",
    users=UserLoad({Transfer: 1}, share=_share, counted={Transfer: "SELECT COUNT(*) FROM bank.history"}),
)
