"""Predictions -> numbers: metrics, the protocols that ask for them, the report, and plots."""
