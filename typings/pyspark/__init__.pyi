# Spark is an extra, and large: its types are not needed to check ours.
