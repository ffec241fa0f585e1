"""How Sphinx builds the documentation; ``make docs`` calls it.

Sphinx with MyST, since both are kept by many hands and the pages stay plain Markdown that is readable without a build.
"""

from __future__ import annotations

import re
from typing import Any

import jmsapi

project = "jmsapi"
author = "the authors of jmsapi"
release = version = jmsapi.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"jmsapi {release}"
html_show_sourcelink = False

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Threads", "notes_style"), ("Spec", "notes_style")]

_OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*|[^):#\s]+\.(?:py|toml|json|yml|yaml))(?:#[^)]*)?\)")
"""A link to a file of the project that is no page: in a repository it leads there, on the site there is nothing to lead to."""
_ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
_FRAGMENT = re.compile(r"(\]\([^)\s#]*)#(\d[\w.-]*)\)")
_SECTION = re.compile(r"^(\s*)(Threads|Spec): (.*)$")


def _without_links_outside(app: Any, name: str, source: list[str]) -> None:
    """Show the path of a file that is no page instead of a link."""
    depth = name.count("/")

    def shown(match: re.Match[str]) -> str:
        text, path = match[1], match[2]
        climbs = path.count("../")
        if path.endswith(".md") and climbs <= depth:
            return match[0]
        return text if text.startswith("`") else f"{text} (`{path.replace('../', '')}`)"

    # An anchor in HTML is no target that MyST knows.
    text = _ANCHOR.sub(lambda match: f"[]{{#{_id(match[1])}}}", _OUTSIDE.sub(shown, source[0]))
    source[0] = _FRAGMENT.sub(lambda match: f"{match[1]}#{_id(match[2])})", text)


def _id(text: str) -> str:
    """Return an id that MyST can read: those of requirements begin with a digit and have dots."""
    return "r-" + text.replace(".", "-") if text[0].isdigit() else text


def _sections_of_one_line(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make ``Spec: 3.8`` and ``Threads: any`` paragraphs of their own; here they stand on the line of their heading."""
    written: list[str] = []
    if what == "module":
        # The page says it in its own words.
        lines[:] = []
    for line in lines:
        match = _SECTION.match(line)
        if match:
            written += ["", f"{match[1]}**{match[2]}:** {match[3]}"]
        else:
            written.append(line)
    lines[:] = written


def setup(app: Any) -> None:
    """Register the two."""
    app.connect("source-read", _without_links_outside)
    # Before napoleon, which reads headings.
    app.connect("autodoc-process-docstring", _sections_of_one_line, priority=100)
