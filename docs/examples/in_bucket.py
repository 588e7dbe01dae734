"""Tables from a bucket of S3, their join in the bucket, and its results as objects, each once."""

import sys
from functools import partial

import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from braid import StreamJoin
from obstore.store import from_url


def read_folder(url: str) -> pa.Table:
    """Return the rows of all Parquet objects of a folder."""
    store = from_url(url)
    names = [item["path"] for page in obstore.list(store) for item in page]
    objects = [obstore.get(store, name).bytes() for name in sorted(names)]
    return pa.concat_tables(pq.read_table(pa.BufferReader(bytes(body))) for body in objects)


def into_bucket(results: pa.Table, batch: int, url: str) -> None:
    """Put a batch as one object. Its name is the number: a repetition replaces it by itself."""
    amounts = pc.struct_field(results["p"], "amount")
    rows = pa.table({"order_id": pc.struct_field(results["o"], "id"), "amount": amounts})
    file = pa.BufferOutputStream()
    pq.write_table(rows, file)
    obstore.put(from_url(url), f"{batch:06d}.parquet", file.getvalue().to_pybytes())


def main(lake: str) -> None:
    """Start the join, or continue it."""
    streams = {"o": read_folder(f"{lake}/orders"), "p": read_folder(f"{lake}/payments")}
    join = StreamJoin(streams, "o.id = p.order_id")
    sink = partial(into_bucket, url=f"{lake}/paid")
    join.start(f"{lake}/runs/payments", batches="batch", foreachBatch=sink).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
