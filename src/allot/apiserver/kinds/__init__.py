"""A strategy per kind: what the server fills in, keeps, drops and checks on each kind of write."""
