//! The framing of values inside collections, tuples and vectors. Each function takes one piece from the front of `rest`. `None` means
//! that the bytes are truncated or malformed; `rest` is then unchanged.

use crate::bytes::Cursor;

/// `i32` count at the head of a frozen collection.
pub(crate) fn take_count(rest: &mut &[u8]) -> Option<i32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(i32::from_be_bytes(*head))
}

/// `i32` length and bytes; a negative length is null (`Some(None)`).
#[expect(clippy::option_option, reason = "outer: framing is sound; inner: null")]
pub(crate) fn take_framed<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    let Ok(len) = usize::try_from(i32::from_be_bytes(*head)) else {
        *rest = tail;
        return Some(None);
    };
    let (value, tail) = tail.split_at_checked(len)?;
    *rest = tail;
    Some(Some(value))
}

/// One element of a vector whose elements have `fixed_len` bytes, or a `uvint` length prefix.
pub(crate) fn take_vector_element<'a>(
    rest: &mut &'a [u8],
    fixed_len: Option<u32>,
) -> Option<&'a [u8]> {
    if fixed_len == Some(0) {
        // Elements without bytes carry nothing, and a false dimension could claim two thousand million of them.
        return None;
    }
    if let Some(len) = fixed_len {
        let (value, tail) = rest.split_at_checked(len as usize)?;
        *rest = tail;
        return Some(value);
    }
    let mut cursor = Cursor::new(rest);
    let value = cursor.vbytes().ok()?;
    *rest = cursor.rest();
    Some(value)
}

/// One component of a composite, with its end-of-component byte.
pub(crate) fn take_component<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], i8)> {
    let (len, tail) = rest.split_first_chunk::<2>()?;
    let (value, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (end, tail) = tail.split_first()?;
    *rest = tail;
    Some((value, *end as i8))
}

/// The message for a truncated component.
pub(super) fn component_message(rest: &[u8], i: usize) -> String {
    let Some((len, tail)) = rest.split_first_chunk::<2>() else {
        return format!("Not enough bytes to read value size of component {i}");
    };
    if tail.len() < usize::from(u16::from_be_bytes(*len)) {
        return format!("Not enough bytes to read value of component {i}");
    }
    format!("Not enough bytes to read the end-of-component byte of component{i}")
}
