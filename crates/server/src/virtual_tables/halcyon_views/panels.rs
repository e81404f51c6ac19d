//! What the page and the dashboard for Grafana show.

use halcyon_operate::PANELS;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.panels (
    name text PRIMARY KEY,
    expressions frozen<map<text, text>>,
    kind text,
    position int,
    query text,
    question text,
    section text,
    title text,
    unit text
) WITH ID = 331d0e70-1788-3280-a85e-6c97985d98c9
    AND comment = 'panels of the page: the statement whose rows each shows, and expressions of PromQL by legend';";

fn fill(_: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "name",
        "position",
        "section",
        "title",
        "question",
        "unit",
        "kind",
        "query",
        "expressions",
    ]);
    for (position, panel) in (1_i32..).zip(PANELS) {
        let text = |text: &str| text.to_owned();
        let expressions: Vec<(String, String)> =
            panel.expressions.iter().map(|(legend, of)| (text(legend), text(of))).collect();
        rows.push([
            panel.name.into(),
            position.into(),
            panel.section.into(),
            panel.title.into(),
            panel.question.into(),
            panel.unit.name().into(),
            panel.kind.name().into(),
            panel.query.into(),
            expressions.as_slice().into(),
        ]);
    }
}
