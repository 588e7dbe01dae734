"""Folder of a run: manifest log, blocks, results, events, input, and their repair."""
