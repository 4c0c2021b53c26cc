"""A score, an encoder, an explain method, a metric and a task that Regard does not know."""
