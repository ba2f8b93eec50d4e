"""The site of the documentation, as Sphinx builds it (`make docs`). A link that leads nowhere is an error there."""

project = "Outlast"
author = "The Outlast developers"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
myst_fence_as_directive = ["mermaid"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Outlast"
html_show_sphinx = False
#: Links to headings, as GitHub names them.
myst_heading_anchors = 4
