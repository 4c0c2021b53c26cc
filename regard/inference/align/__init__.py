"""Word alignments from the attention of a trained translator."""
