"""The map of a hub as it is now, as SVG: small enough to be drawn anew whenever it changes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from braid.papers.reuse.network import Network, link_of

from braid_widgets.base.charts import GREY
from braid_widgets.base.colours import BOUND, MIGRATION
from braid_widgets.reuse.scenes import Step
from braid_widgets.reuse.traces import FLOW, LOOK, WIDEST

WIDE, HIGH, EDGE = 900.0, 420.0, 70.0


def network_svg(network: Network, moment: Step) -> str:
    """Links as wide as their bytes in the last batch, counted; operators and queries at nodes."""
    at = _places(network)
    most = max(moment.links.values(), default=1)
    lines = "".join(_lines(network, moment, at, most))
    nodes = "".join(_nodes(network, moment, at))
    title = escape(moment.title)
    return (
        f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" role="img" aria-label="{title}" '
        'style="width:100%;max-width:1080px;font:12px sans-serif">'
        f'<text x="10" y="18" fill="currentColor">{title}</text>{lines}{nodes}</svg>'
    )


def _places(network: Network) -> dict[str, tuple[float, float]]:
    xs, ys = zip(*(n.at for n in network.nodes), strict=True)

    def scaled(value: float, values: tuple[float, ...], size: float) -> float:
        span = max(values) - min(values)
        share = (value - min(values)) / span if span else 0.5
        return EDGE + share * (size - 2 * EDGE)

    return {
        n.name: (scaled(n.at[0], xs, WIDE), HIGH - scaled(n.at[1], ys, HIGH)) for n in network.nodes
    }


def _lines(
    network: Network, moment: Step, at: dict[str, tuple[float, float]], most: float
) -> Iterator[str]:
    for a, b, ms in network.links:
        size = moment.links.get(link_of(a, b), 0)
        (x0, y0), (x1, y1) = at[a], at[b]
        dash = "" if size else ' stroke-dasharray="3 4"'
        width = 1 + WIDEST * size / most
        yield (
            f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}" stroke="'
            f'{FLOW if size else GREY}" stroke-width="{width:.1f}"{dash}>'
            f"<title>{a} - {b}: {ms:g} ms, {size:,.0f} bytes</title></line>"
        )


def _nodes(network: Network, moment: Step, at: dict[str, tuple[float, float]]) -> Iterator[str]:
    for node in network.nodes:
        x, y = at[node.name]
        said = [b.text for b in moment.operators.values() if b.node == node.name]
        busy = any(
            b.node == node.name and b.id in moment.touched for b in moment.operators.values()
        )
        colour = LOOK[node.kind][1]
        if node.name in moment.down:
            colour, said = BOUND, ["down"]
        elif busy:
            colour = MIGRATION
        asked = [q for q, sink in moment.queries.items() if sink == node.name]
        lines = [node.name, *said, *([", ".join(asked)] if asked else [])]
        yield f'<circle cx="{x:g}" cy="{y:g}" r="{11 if said else 7}" fill="{colour}"/>'
        for i, line in enumerate(reversed(lines)):
            weight = "bold" if i == len(lines) - 1 else "normal"
            yield (
                f'<text x="{x:g}" y="{y - 16 - 14 * i:g}" text-anchor="middle" font-weight="'
                f'{weight}" fill="currentColor">{escape(line)}</text>'
            )
