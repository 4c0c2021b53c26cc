"""Commands that produce evidence: comparisons of systems, and experiments on claims."""
