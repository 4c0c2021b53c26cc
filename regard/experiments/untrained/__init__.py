"""Experiments on mechanisms: nothing is trained, or only a few vectors."""
