"""Sentences with named entities, many of them ambiguous."""
