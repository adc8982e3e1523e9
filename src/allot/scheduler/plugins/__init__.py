"""The standard plugins, one module each."""
