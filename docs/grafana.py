"""Write docs/grafana.json, a board for what `braid serve` exports.

.venv/bin/python docs/grafana.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PANELS = (
    ("Active", "braid_up", "none"),
    ("Failed or died", "1 - braid_well", "none"),
    ("Batches", "braid_batches", "none"),
    ("Seconds since the last commit", "braid_lag_seconds", "s"),
    ("Tuples a second", "deriv(braid_received_tuples[5m])", "none"),
    ("Results of a batch", "braid_batch_results", "none"),
    ("Tuples held", "braid_live_tuples", "none"),
    ("Tuples held more each second", "deriv(braid_live_tuples[15m])", "none"),
    ("Seconds of a batch by part", 'braid_batch_seconds{part!="total"}', "s"),
    ("Late, untimed and early tuples", "braid_irregular_tuples", "none"),
    ("Event time behind now", "time() - braid_watermark_seconds < 1e9", "s"),
    ("Due pairs that were missed", "braid_batch_missed_pairs", "none"),
)
LEGENDS = {
    "braid_batch_seconds": "{{run}} {{part}}",
    "braid_irregular_tuples": "{{run}} {{stream}} {{kind}}",
    "braid_watermark_seconds": "{{run}} {{stream}}",
}


def make_board() -> dict[str, Any]:
    """Return the board."""
    return {
        "title": "Braid",
        "uid": "braid",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [make_panel(number, *panel) for number, panel in enumerate(PANELS)],
    }


def make_panel(number: int, title: str, expression: str, unit: str) -> dict[str, Any]:
    """Return a panel; three are in a row."""
    legend = next((text for name, text in LEGENDS.items() if name in expression), "{{run}}")
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {"x": number % 3 * 8, "y": number // 3 * 8, "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "expr": expression, "legendFormat": legend}],
    }


if __name__ == "__main__":
    text = json.dumps(make_board(), indent=1) + "\n"
    (Path(__file__).parent / "grafana.json").write_text(text, encoding="utf-8")
