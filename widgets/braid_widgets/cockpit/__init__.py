"""The cockpit: one view for every run, with progress, state by host, decisions and their
reasons.
"""
