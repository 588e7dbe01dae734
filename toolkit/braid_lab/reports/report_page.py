"""A notebook after its run as one HTML page that works offline."""

from __future__ import annotations

import json
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
{%- block any_cell scoped -%}{{ cell.metadata.get("fold", "") }}{{ super() }}{%- endblock -%}
{%- block body_footer -%}</details>{{ super() }}{%- endblock -%}
"""
LAB = re.compile(r"<!-- lab -->.*?<!-- /lab -->", re.DOTALL)
"""Passages for users of JupyterLab; a page leaves them out."""
HEADING = re.compile(r"#{1,6} +(.+)\n*")
_PLOTLY = "application/vnd.plotly.v1+json"
FIRST = "The run"
"""Title of a page's first section: what the notebook begins with, with the picture that plays."""
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]


def render_page(notebook: NotebookNode, title: str, folder: Path, head: str = "") -> str:
    """Return the notebook as one HTML page that loads no external resources.

    It has no code, static views instead of widgets, and embedded images. ``head`` is HTML that
    comes first; each section of the notebook is folded below it. Two runs have the same ids.
    ``folder`` is the base of the notebook's relative links. Raises NotebookError if an output would
    load an external resource.
    """
    with OptionalImport("notebooks"):
        from jinja2 import DictLoader
        from nbconvert import HTMLExporter

    notebook.metadata.pop("widgets", None)  # a page without a kernel cannot use it
    for n, cell in enumerate(notebook.cells):
        cell.id = f"cell-{n}"
        if cell.cell_type == "markdown":
            cell.source = LAB.sub("", cell.source)
    fold_sections(notebook)
    draw_plotly_figures(notebook)
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


def fold_sections(notebook: NotebookNode) -> None:
    """Mark the cells at which a page's folded sections begin: the first one, and each heading.

    A heading becomes the title of its section and leaves its cell. A cell's mark is HTML in its
    metadata, under "fold".
    """
    for n, cell in enumerate(notebook.cells):
        title = FIRST if n == 0 else ""
        if cell.cell_type == "markdown" and (heading := HEADING.match(cell.source)):
            cell.source = cell.source[heading.end() :]
            title = title or _strip_markup(heading[1])
        if title:
            cell.metadata["fold"] = ("</details>" if n else "") + (
                f'<details class="braid-report-fold"><summary>{escape(title)}</summary>'
            )


def draw_plotly_figures(notebook: NotebookNode) -> None:
    """Add HTML to the figures of plotly in a notebook, which JupyterLab draws from their data.

    The first has plotly.js, unless another output has it.
    """
    outputs = [o.get("data", {}) for cell in notebook.cells for o in cell.get("outputs", ())]
    figures = [data for data in outputs if _PLOTLY in data and "text/html" not in data]
    if not figures:
        return
    with OptionalImport("notebooks"):
        from plotly.io import from_json, to_html

    has_plotly = any("plotly.js v" in "".join(data.get("text/html", "")) for data in outputs)
    for n, data in enumerate(figures):
        data["text/html"] = to_html(
            from_json(json.dumps(data[_PLOTLY]), skip_invalid=True),
            include_plotlyjs=n == 0 and not has_plotly,
            include_mathjax=False,
            full_html=False,
            div_id=f"plotly-{n}",
            config={"plotlyServerURL": ""},
        )


def _strip_markup(text: str) -> str:
    """Return a heading without links, stars and backticks."""
    return re.sub(r"[*`]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)).strip()


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
