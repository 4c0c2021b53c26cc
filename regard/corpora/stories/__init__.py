"""Short stories for language models."""
