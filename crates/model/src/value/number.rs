//! Decimals as `BigDecimal.toString` writes them.

use num_bigint::{BigInt, Sign};

/// Plain where the scale is not negative and the exponent not below −6; else with an exponent.
pub(super) fn decimal_string(scale: i32, unscaled: &BigInt) -> String {
    if scale == 0 {
        return unscaled.to_string();
    }
    let digits = unscaled.magnitude().to_string();
    let sign = if unscaled.sign() == Sign::Minus { "-" } else { "" };
    let adjusted = digits.len() as i64 - 1 - i64::from(scale);
    if scale >= 0 && adjusted >= -6 {
        let scale = scale.unsigned_abs() as usize;
        return match digits.len().checked_sub(scale) {
            Some(whole) if whole > 0 => {
                let (whole, fraction) = digits.split_at(whole);
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!("{sign}0.{digits:0>scale$}"),
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let exponent = match adjusted {
        0 => String::new(),
        1.. => format!("E+{adjusted}"),
        _ => format!("E{adjusted}"),
    };
    format!("{sign}{first}{point}{rest}{exponent}")
}
