"""A slowly changing dimension: orders with the tier that their customer has now."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from braid import StreamJoin

orders = pa.table({"id": [1, 2, 3], "customer": [7, 8, 7], "batch": [0, 1, 2]})
customers = pa.table(
    {
        "id": [7, 8, 7, 7, 8],
        "tier": ["basic", "gold", "basic", "gold", "gold"],
        "_change_type": ["insert", "insert", "update_preimage", "update_postimage", "delete"],
        "batch": [0, 0, 2, 2, 3],
    }
)

with TemporaryDirectory() as folder:
    join = StreamJoin(
        {"o": orders, "c": customers}, "o.customer = c.id", changes={"c": "_change_type"}
    )
    run = join.start(Path(folder) / "run", batches="batch")
    run.awaitTermination()
    print("changes")
    for row in run.results().to_pylist():
        print(" ", row["_change_type"], row["o"]["id"], row["c"]["tier"])
    print("now")
    for row in sorted(run.results(net=True).to_pylist(), key=lambda row: row["o"]["id"]):
        print(" ", row["o"]["id"], row["c"]["tier"])
