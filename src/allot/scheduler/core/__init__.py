"""The scheduling queue, the scheduling cycle, binding, and the event handlers that feed them."""
