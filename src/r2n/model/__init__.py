"""Tensors -> predictions: input layer, reasoning layers, output layers."""
