"""Tensors -> logits: factor graphs, input layers, reasoning layers."""
