"""Rules -> ground rules: strategies, the queries they compile to, and the engine that runs them."""
