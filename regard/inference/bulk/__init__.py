"""A run on many files: in worker processes of this machine, or on a Ray cluster."""
