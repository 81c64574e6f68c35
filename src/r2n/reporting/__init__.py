"""Runs -> pages: what a run was and how good it is, for people; and runs side by side."""
