"""Predictions -> a run: one training is one folder, whole in itself."""
