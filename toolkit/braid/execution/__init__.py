"""Run the tasks of a batch: on Spark, or on threads of this process."""
