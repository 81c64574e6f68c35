"""Sphinx settings: Markdown pages, and the API from the docstrings."""

from importlib.metadata import version as installed_version

project = "r2n"
author = "The r2n developers"
copyright = author
version = release = installed_version("r2n")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"r2n {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
