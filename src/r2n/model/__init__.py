"""A model: train, evaluate, predict, explain."""
