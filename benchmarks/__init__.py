"""What ``receipt parse`` costs beside other programs on the same logs: inputs, peers, targets, profile, growth and guard."""
