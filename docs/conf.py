"""How Sphinx builds the documentation: ``sphinx-build -W docs build/docs``, with the extra ``docs``."""

from __future__ import annotations

import dramatiq_echomq

project = "dramatiq-echomq"
author = "the dramatiq-echomq maintainers"
release = version = dramatiq_echomq.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["build"]

html_theme = "furo"
html_title = "dramatiq-echomq"
html_show_sourcelink = False

# Dramatiq's style of docstrings: "Parameters:", with the types in brackets.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False

copybutton_exclude = ".linenos, .gp, .go"
