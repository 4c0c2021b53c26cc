"""Readers: from files of any supported format to examples."""
