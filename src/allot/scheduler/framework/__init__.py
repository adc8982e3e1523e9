"""The plugin framework: extension points, statuses, cycle state, events, and the handle for plugins."""
