"""English–French sentence pairs from one grammar, with their word alignments."""
