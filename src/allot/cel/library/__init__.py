"""The function libraries. Each module declares its functions as `FUNCTIONS`."""
