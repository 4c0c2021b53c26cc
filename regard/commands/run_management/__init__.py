"""Commands that list, describe, pack and prune runs."""
