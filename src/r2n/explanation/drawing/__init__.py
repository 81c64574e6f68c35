"""An explanation, drawn: marks on a picture, laid out once, written as SVG here and as PNG elsewhere."""
