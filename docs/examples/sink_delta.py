"""Results into a Delta table, exactly once."""

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake


def into_delta(results: pa.Table, batch: int, path: str, run: str = "payments") -> None:
    """Append a batch; Delta stores its number in the same commit."""
    if DeltaTable.is_deltatable(path):
        last = DeltaTable(path).transaction_version(run)
        if last is not None and last >= batch:
            return
    amounts = pc.struct_field(results["p"], "amount")
    rows = pa.table({"order_id": pc.struct_field(results["o"], "id"), "amount": amounts})
    mark = CommitProperties(app_transactions=[Transaction(run, batch)])
    write_deltalake(path, rows, mode="append", commit_properties=mark)
