"""The native decoder: plans of a translator's decoder, run in C."""
