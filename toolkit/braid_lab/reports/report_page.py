"""A notebook after its run as one HTML page that works offline."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from braid.util.optional_imports import OptionalImport

from braid_lab.reports.notebook_parameters import NotebookError

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = """{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_css -%}
<meta name="color-scheme" content="light dark">
{{ resources.include_css("static/theme-dark.css")
   | replace("<style", '<style media="(prefers-color-scheme: dark)"') }}
<style>.jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere; }</style>
{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block stream_stderr -%}{%- endblock -%}
{%- block error -%}{%- endblock -%}
{#- The page follows the medium, so it must not say that its theme is light. -#}
{%- block body_header -%}
{{ super() | replace('data-jp-theme-light="true"', "") }}{{ resources.head }}
{%- endblock -%}
"""
LAB = re.compile(r"<!-- lab -->.*?<!-- /lab -->", re.DOTALL)
"""Passages for users of JupyterLab; a page leaves them out."""
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]


def render_page(notebook: NotebookNode, title: str, folder: Path, head: str = "") -> str:
    """Return the notebook as one HTML page that loads no external resources.

    It has no code, static views instead of widgets, and embedded images. ``head`` is HTML that
    comes first. Two runs have the same ids. ``folder`` is the base of the notebook's relative
    links. Raises NotebookError if an output would load an external resource.
    """
    with OptionalImport("notebooks"):
        from jinja2 import DictLoader
        from nbconvert import HTMLExporter

    notebook.metadata.pop("widgets", None)  # a page without a kernel cannot use it
    for n, cell in enumerate(notebook.cells):
        cell.id = f"cell-{n}"
        if cell.cell_type == "markdown":
            cell.source = LAB.sub("", cell.source)
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        extra_loaders=[DictLoader({"offline.html.j2": TEMPLATE})],
        template_file="offline.html.j2",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    exporter.config.NbConvertBase.display_data_priority = SHOWN
    html, _ = exporter.from_notebook_node(
        notebook,
        resources={"metadata": {"name": escape(title), "path": str(folder)}, "head": head},
    )
    if loads := find_external_urls(html):
        raise NotebookError(f"the page would not work offline, it loads {', '.join(loads[:5])}")
    return str(html)


def find_external_urls(html: str) -> list[str]:
    """Return the addresses that a browser would fetch to show this page.

    These are addresses of scripts, styles, images, frames and media.
    """
    with OptionalImport("notebooks"):
        from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    loads = [str(tag["src"]) for tag in soup.select("[src]")] + [
        str(tag["href"]) for tag in soup.select("link[href]")
    ]
    for style in soup.select("style"):
        loads += re.findall(
            r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", style.get_text()
        )
    return [address for address in loads if not address.startswith(("data:", "#"))]
