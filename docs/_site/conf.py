"""Settings of Sphinx for the documentation's site. `pages.py` assembles what it reads."""

project = "allot"
html_title = "allot"
copyright = "the allot authors"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]  # manifests with placeholders are not quite YAML
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme = "furo"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}
