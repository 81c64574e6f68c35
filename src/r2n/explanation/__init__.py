"""A trained network, explained: what moved an answer, and what would flip it."""
