"""HTTP: connections, routes, content negotiation, flow control, discovery, OpenAPI, health."""
