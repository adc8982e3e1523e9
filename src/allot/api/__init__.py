"""The nouns: API types, identities, quantities, versions of the API and conversion between them."""
