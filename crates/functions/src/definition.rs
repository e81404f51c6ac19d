//! Functions and their values as messages for the JVM (`plugin/functions/`).

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_schema::function::UserFunction;

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.put_ibytes(text);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn put_type(out: &mut Vec<u8>, of: &CqlType) {
    let of = of.thawed();
    // `DataType.Kind` has them in the same order.
    if let Some((tag, _)) = (0..).zip(&CqlType::NATIVE).find(|(_, native)| *native == of) {
        return out.push(tag);
    }
    match of {
        CqlType::List(element) => {
            out.push(20);
            put_type(out, element);
        }
        CqlType::Set(element) => {
            out.push(21);
            put_type(out, element);
        }
        CqlType::Map(key, value) => {
            out.push(22);
            put_type(out, key);
            put_type(out, value);
        }
        CqlType::Tuple(fields) => {
            out.push(23);
            put_count(out, fields.len());
            fields.iter().for_each(|field| put_type(out, field));
        }
        CqlType::Udt(udt) => {
            out.push(24);
            put_text(out, &udt.name);
            put_count(out, udt.fields.len());
            for (name, field) in &udt.fields {
                put_text(out, name);
                put_type(out, field);
            }
        }
        CqlType::Vector(element, dimension) => {
            out.push(25);
            put_type(out, element);
            put_count(out, *dimension as usize);
            put_count(out, element.fixed_len().unwrap_or(0) as usize);
        }
        // A body sees the bytes of values whose type the drivers do not know.
        _ => put_type(out, &CqlType::Blob),
    }
}

/// What the JVM makes a function of.
pub(super) fn definition(function: &UserFunction) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, function.keyspace.as_bytes());
    put_text(&mut out, function.name.as_bytes());
    out.push(u8::from(function.called_on_null));
    put_count(&mut out, function.arguments.len());
    for (name, of) in &function.arguments {
        put_text(&mut out, name.as_bytes());
        put_type(&mut out, of);
    }
    put_type(&mut out, &function.returns);
    put_text(&mut out, function.body.as_bytes());
    out
}

pub(super) fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => out.put_ibytes(value),
        None => out.put_i32(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what a definition consists of, and that values of a type without a Java class are bytes.
    #[test]
    fn definitions() {
        let function = UserFunction {
            keyspace: "k".to_owned(),
            name: "f".to_owned(),
            arguments: vec![("a".to_owned(), CqlType::Set(Box::new(CqlType::Int)))],
            returns: CqlType::Vector(Box::new(CqlType::Float), 3),
            called_on_null: true,
            language: "java".to_owned(),
            body: "x".to_owned(),
        };
        let expected = [
            &[0, 0, 0, 1, b'k', 0, 0, 0, 1, b'f', 1, 0, 0, 0, 1, 0, 0, 0, 1, b'a', 21, 11][..],
            &[25, 9, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1, b'x'],
        ];
        assert_eq!(definition(&function), expected.concat());
        let returning = |returns| definition(&UserFunction { returns, ..function.clone() });
        assert_eq!(returning(CqlType::Custom("c".to_owned())), returning(CqlType::Blob));
    }
}
