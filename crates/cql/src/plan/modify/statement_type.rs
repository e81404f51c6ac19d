//! Which modification a statement is.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementType {
    Insert,
    Update,
    Delete,
}

impl std::fmt::Display for StatementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StatementType::Insert => "INSERT",
            StatementType::Update => "UPDATE",
            StatementType::Delete => "DELETE",
        })
    }
}
