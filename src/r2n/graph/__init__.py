"""Ground rules -> tensors: the factor graph, and the part of it that a batch needs."""
