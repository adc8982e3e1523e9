"""The plugin framework: what plugins say, what they remember, and where in the cycle they are asked."""
