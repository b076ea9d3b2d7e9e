"""Where files lie: storage on file systems of Beam, local copies, and the folder that a job writes."""
