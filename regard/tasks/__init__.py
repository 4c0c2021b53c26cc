"""Tasks: data, model, loss, search and metric together, one file a task."""
