"""The experiments of the papers as functions that return tidy data frames."""
