"""The laboratory of Braid: workloads, studies of the papers, and reports."""
