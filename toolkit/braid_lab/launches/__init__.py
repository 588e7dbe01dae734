"""Launches of workloads and studies, their modelled costs, recorded runs and the workbench."""
