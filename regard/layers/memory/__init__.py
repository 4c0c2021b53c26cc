"""External memory with read and write heads: NTM and DNC."""
