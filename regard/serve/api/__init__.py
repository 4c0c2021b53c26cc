"""The HTTP interface: what each route accepts and returns."""
