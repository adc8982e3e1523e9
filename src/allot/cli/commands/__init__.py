"""Commands whose work takes long to import: only their options are here, for help and completion."""
