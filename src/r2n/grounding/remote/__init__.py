"""Tables that Spark reads -> ground rules on disk, without the facts ever standing in one process."""
