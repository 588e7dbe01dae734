"""Plain data and pure decisions: what a plan is and when it is right. No Spark, no SQL, no
tuple.
"""
