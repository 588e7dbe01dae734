"""Views of a join that runs, ran, or is simulated: functions of its events alone."""
