//! Names from outside as components of paths: of keyspaces, tables, indexes and snapshots.
//!
//! Such a name may come from a statement, a stored row or an operator. [`path_component`] is the only way of one into a path.

/// Of a name in a directory, in bytes (`NAME_MAX`).
const LONGEST: usize = 255;

/// The name, if a path that it is joined to gets exactly one more component by it; else why not.
pub fn path_component(name: &str) -> Result<&str, String> {
    let why = match name {
        "" => "it is empty".to_owned(),
        "." | ".." => "it means another folder".to_owned(),
        _ if name.contains(['/', '\0']) => "it contains / or NUL".to_owned(),
        _ if name.len() > LONGEST => format!("it has more than {LONGEST} bytes"),
        _ => return Ok(name),
    };
    let shown: String = name.escape_debug().take(LONGEST).collect();
    Err(format!("\"{shown}\" cannot be the name of a file: {why}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Proves that what is accepted is one component, and that what would leave the folder, or fit no file system, is refused.
    #[test]
    fn one_component_or_none() {
        let longest = "x".repeat(LONGEST);
        for name in ["t", "...", "a..b", ".hidden", "a b", "\u{e9}", longest.as_str()] {
            let path = Path::new("/data").join(path_component(name).unwrap());
            assert_eq!(path.components().count(), 3, "{name}");
            assert_eq!(path.parent(), Some(Path::new("/data")), "{name}");
        }
        let long = "x".repeat(LONGEST + 1);
        for name in ["", ".", "..", "/", "a/b", "../../esc", "/etc", "a\0b", long.as_str()] {
            let refused = path_component(name).unwrap_err();
            assert!(refused.contains("cannot be the name of a file"), "{refused}");
            assert!(!refused.contains('\0'), "{refused:?}");
        }
    }
}
