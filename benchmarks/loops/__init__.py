"""What people write by hand: a loop over lines with a pattern for each number. Each is run as a process of its own."""
