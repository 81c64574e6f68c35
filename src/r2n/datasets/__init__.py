"""Known problems: benchmarks that travel inside the package, and those that are fetched."""
