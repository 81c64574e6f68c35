"""A model as a folder."""
