//! Names of MBeans, and patterns of them: what `javax.management.ObjectName` takes.
//!
//! ```text
//! domain:key=value,key="value",*        * and ? stand for others in the domain and in values; `*` alone for other properties
//! ```

use std::collections::HashSet;

use crate::Error;

/// Refuses a name as Cassandra does (`JMXResource`, `CqlParser`).
pub(super) fn check(name: &str) -> Result<(), Error> {
    let refused = match name {
        "" => "Empty JMX object name supplied".to_owned(),
        "*:*" => "Please use ALL MBEANS instead of wildcard pattern".to_owned(),
        _ if is_valid(name) => return Ok(()),
        _ => format!("{name} is not a valid JMX object name"),
    };
    Err(Error::Syntax(refused))
}

pub(super) fn is_valid(name: &str) -> bool {
    let Some((domain, properties)) = name.split_once(':') else { return false };
    !domain.contains('\n') && has_properties(properties)
}

fn has_properties(text: &str) -> bool {
    let mut keys = HashSet::new();
    let mut rest = text;
    loop {
        let (key, behind) = match rest.strip_prefix('*') {
            Some(behind) if behind.is_empty() || behind.starts_with(',') => ("*", Some(behind)),
            _ => match rest.split_once('=') {
                Some((key, value)) if is_key(key) => (key, behind_value(value)),
                _ => return false,
            },
        };
        let Some(behind) = behind else { return false };
        if !keys.insert(key) {
            return false;
        }
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return behind.is_empty(),
        }
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && !key.contains([',', ':', '*', '?', '\n'])
}

/// What follows the value that a text starts with; `None` for a text that starts with anything else.
fn behind_value(text: &str) -> Option<&str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, behind) = text.split_at(text.find(',').unwrap_or(text.len()));
        return (!value.contains(['=', ':', '"', '\n'])).then_some(behind);
    };
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return quoted.get(at + 1..),
            '\\' if !matches!(chars.next()?.1, '\\' | '"' | '*' | '?' | 'n') => return None,
            '\n' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    /// Proves which names and patterns Cassandra 5.0.9 took, and which it refused.
    #[test]
    fn object_names_are_javas() {
        let valid = [
            "a:type=x",
            "a:type=",
            "a:*",
            ":a=b",
            "a:a=\"x,y\"",
            "a:a=b,*",
            "a:a=b*",
            "a?:c=d",
            "a:c d=e f",
            "a:a=\"x\\\"y\"",
            "a:a=\"x\\ny\"",
            "a:a=\"x*\"",
            "a:*,a=b",
            "a:a=b,*,c=d",
            "a:a=\"\",\"b\"=c",
            "a/b:c=d/e",
            "*:a=b",
            "**:*",
        ];
        for name in valid {
            assert!(is_valid(name), "{name}");
        }
        let invalid = [
            "a",
            "a:",
            "a:b",
            "a:type=x,type=y",
            "a:a=\"x",
            "a:a=b,",
            "a:b:c=d",
            "a:c*=d",
            "a:c=d=e",
            "a\n:b=c",
            "a:a=\"x\\y\"",
            "a:a=\"*\"b",
            "a:=b",
            "a:a=b,,c=d",
            "a:*,*",
            "a:a=b:c",
            "a:a=b\nc",
            "a:a,b=c",
            "a:,a=b",
            "a:a=b\"c",
            "a:a?=b",
            "a:a=b,*x",
            "a: *",
            "a:a=\"b\nc\"",
            "a:**",
            "*:*,*",
        ];
        for name in invalid {
            assert!(!is_valid(name), "{name}");
        }
    }
}
