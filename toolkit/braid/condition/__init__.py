"""From Spark SQL to filters, links and residuals."""
