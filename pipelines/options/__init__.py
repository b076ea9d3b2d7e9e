"""Options of each job, as plain values, and what they may be."""
