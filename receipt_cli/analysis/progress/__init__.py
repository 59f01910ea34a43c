"""What a phase achieved: steps and tokens in the time that passed, the spread of its step times, its checkpoints."""
