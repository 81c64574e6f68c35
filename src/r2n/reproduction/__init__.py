"""The paper's tables, measured, and baselines; here the numbers that the paper printed."""

PAPER_COUNTRIES = {"countries-s1": 1.000, "countries-s2": 0.992, "countries-s3": 0.951}
"""R2NS on Countries: the paper calls it AUC-PR; the authors' code computes a macro ROC-AUC under that name."""

PAPER_SECONDS = {"countries-s3": 125.0, "nations": 170.0, "kinship": 2442.0, "umls": 877.0}
"""Training time in the paper, on a V100."""
