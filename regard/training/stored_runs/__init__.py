"""Runs as files: what they hold, model cards, and smaller copies; without torch."""
