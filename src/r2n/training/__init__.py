"""Predictions -> a trained network: what is asked, the losses, and the loop."""
