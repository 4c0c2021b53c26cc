"""HTTP plumbing that knows no model: routing, access, schemas, errors, metrics."""
