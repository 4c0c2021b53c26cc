"""Experiments that train small models."""
