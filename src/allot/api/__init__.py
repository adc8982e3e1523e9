"""API types, identities, selectors, taints, quantities, API versions and conversion between them."""
