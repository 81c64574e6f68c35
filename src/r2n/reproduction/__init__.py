"""The paper's tables, measured, and baselines."""
