"""Reports of runs, comparisons and explanations as HTML pages."""
