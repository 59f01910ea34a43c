"""Progress of a phase: steps and tokens over elapsed time, spread of step times, checkpoints."""
