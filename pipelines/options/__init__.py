"""Options of each job, one module per job: plain values, their limits and their help texts."""
