//! The charts as a dashboard for Grafana: `ops/grafana/halcyon.json`, which a test compares with what is made here.

use serde_json::{Value, json};

use super::{Kind, PANELS, Panel, Unit};

/// Grafana's grid has this many columns.
const COLUMNS: usize = 24;
const WIDE: usize = 8;
const TALL: usize = 8;

fn dashboard() -> Value {
    let mut panels = Vec::new();
    let (mut x, mut y, mut section) = (0, 0, "");
    for panel in PANELS.iter().filter(|panel| !panel.expressions.is_empty()) {
        if panel.section != section {
            section = panel.section;
            y += if x > 0 { TALL } else { 0 };
            let place = json!({"h": 1, "w": COLUMNS, "x": 0, "y": y});
            panels.push(json!({"type": "row", "title": section, "collapsed": false, "gridPos": place, "panels": []}));
            (x, y) = (0, y + 1);
        }
        if x + WIDE > COLUMNS {
            (x, y) = (0, y + TALL);
        }
        panels.push(shown(panel, json!({"h": TALL, "w": WIDE, "x": x, "y": y})));
        x += WIDE;
    }
    for (id, panel) in (1..).zip(&mut panels) {
        panel["id"] = json!(id);
    }
    json!({
        "uid": "halcyon",
        "title": "Halcyon",
        "description": "The panels of a node's own page: halcyon_views.panels.",
        "tags": ["halcyon", "cassandra"],
        "editable": true,
        "graphTooltip": 1,
        "refresh": "10s",
        "schemaVersion": 39,
        "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": variables()},
        "panels": panels,
    })
}

fn variables() -> Vec<Value> {
    let chosen = |name: &str, label: &str, query: &str| {
        json!({
            "name": name,
            "label": label,
            "type": "query",
            "datasource": source(),
            "query": query,
            "refresh": 2,
            "includeAll": true,
            "allValue": ".*",
            "multi": true,
            "current": {"text": "All", "value": "$__all"},
        })
    };
    vec![
        json!({"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}),
        chosen("instance", "Node", "label_values(halcyon_client_requests_total, instance)"),
        chosen(
            "purpose",
            "Purpose of I/O",
            "label_values(halcyon_io_operations_total{instance=~\"$instance\"}, scope)",
        ),
    ]
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn shown(panel: &Panel, place: Value) -> Value {
    let is_heat = panel.kind == Kind::Heat;
    let targets: Vec<Value> = ('A'..)
        .zip(panel.expressions)
        .map(|(name, (legend, expression))| {
            json!({
                "refId": name.to_string(),
                "datasource": source(),
                "expr": expression,
                "legendFormat": legend,
                "format": if is_heat { "heatmap" } else { "time_series" },
            })
        })
        .collect();
    let options = match is_heat {
        true => json!({
            "calculate": false,
            "color": {"mode": "scheme", "scheme": "Blues"},
            "yAxis": {"unit": "s"},
        }),
        false => json!({"legend": {"displayMode": "list"}, "tooltip": {"mode": "multi"}}),
    };
    json!({
        "type": if is_heat { "heatmap" } else { "timeseries" },
        "title": panel.title,
        "description": panel.question,
        "datasource": source(),
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit(panel), "min": 0}, "overrides": []},
        "options": options,
    })
}

/// Grafana's name. Times of Prometheus are in seconds.
fn unit(panel: &Panel) -> &'static str {
    match (panel.unit, panel.kind) {
        (Unit::Nanoseconds, _) => "s",
        (Unit::Microseconds, _) => "µs",
        (Unit::Bytes, _) => "bytes",
        (Unit::BytesPerSecond, _) => "binBps",
        (Unit::Count, Kind::Rates | Kind::Backdrop) => "ops",
        (Unit::Ratio, _) => "percentunit",
        (Unit::Count | Unit::Mixed, _) => "short",
    }
}

/// Proves that the dashboard in `ops` is the one that the panels give. A run with `HALCYON_ACCEPT=1` writes it.
#[test]
fn the_dashboard_has_all_panels() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/grafana/halcyon.json");
    let expected = serde_json::to_string_pretty(&dashboard()).expect("JSON") + "\n";
    if std::env::var_os("HALCYON_ACCEPT").is_some() {
        std::fs::write(path, &expected).expect("written");
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(known == expected, "run `HALCYON_ACCEPT=1 cargo test -p halcyon-operate dashboard`");
}
