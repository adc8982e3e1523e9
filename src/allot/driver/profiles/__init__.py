"""Hardware to choose from by name."""
