"""Short reviews with a sentiment label, full of negation."""
