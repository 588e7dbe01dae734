"""Results into an Iceberg table, exactly once."""

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog

NUMBER = "braid.batch"


def into_iceberg(results: pa.Table, batch: int, folder: str) -> None:
    """Append a batch; its number is in the summary of the snapshot."""
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    amounts = pc.struct_field(results["p"], "amount")
    rows = pa.table({"order_id": pc.struct_field(results["o"], "id"), "amount": amounts})
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table_if_not_exists("lake.paid", schema=rows.schema)
    numbers = [snapshot.summary[NUMBER] for snapshot in table.snapshots()]
    if all(int(number) < batch for number in numbers if number is not None):
        table.append(rows, snapshot_properties={NUMBER: str(batch)})
