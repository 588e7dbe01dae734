"""Parse a Spark SQL condition into filters, index conditions and residuals."""
