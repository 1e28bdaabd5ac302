"""Before the job: facts of every host compared, variables linted, the network probed. `python -m phalanx.check` is a target."""
