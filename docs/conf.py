"""The documentation site: ``sphinx-build -W docs build/site``. CONTRIBUTING.md says how to write a page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from edgewise import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "edgewise"
author = "The edgewise developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "executed",
    "generated",
    "stored",
    "checked",
]
exclude_patterns = ["_extensions", "_static", "images", "reproduction"]

myst_enable_extensions = ["dollarmath", "attrs_inline", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Pages whose code takes longest: they start first, and the quick build leaves their code out (``-t quick``).
executed_long = ["tutorials/personality", "tutorials/digits", "tutorials/simulation"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# One file from an installed package: no network, and no fonts to fetch.
(mathjax,) = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations
mathjax_path = "tex-svg.js"
mathjax3_config = {
    "svg": {"fontCache": "global", "displayAlign": "left", "displayIndent": "1em", "scale": 0.95},
    "options": {"enableMenu": False},
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output) > div.highlight > pre"

html_theme = "pydata_sphinx_theme"
html_title = f"edgewise {release}"
html_static_path = ["_static", str(Path(mathjax, "static", "mathjax", "tex-svg.js"))]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "edgewise", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "show_nav_level": 1,
    "navigation_depth": 2,
    "navbar_align": "left",
    "show_prev_next": True,
    "use_edit_page_button": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "icon_links": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
