//! Values as text: as `Display` has them, but whole numbers, which most values are, without its machinery.

use std::fmt::Write;

pub(super) trait Figure {
    fn write(self, to: &mut String);
}

impl Figure for u64 {
    fn write(self, to: &mut String) {
        let mut digits = [0; 20];
        let (mut left, mut at) = (self, digits.len());
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            (left, at) = (left / 10, at - 1);
            if left == 0 {
                break;
            }
        }
        to.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }
}

impl Figure for f64 {
    fn write(self, to: &mut String) {
        /// Whole numbers below have all their digits.
        const EXACT: f64 = (1_u64 << 53) as f64;
        if self.is_sign_positive() && self < EXACT && self.trunc() == self {
            return (self as u64).write(to);
        }
        // Writing to a string cannot fail.
        let _ = write!(to, "{self}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(figure: impl Figure) -> String {
        let mut text = String::new();
        figure.write(&mut text);
        text
    }

    /// Proves that values are written as `Display` writes them.
    #[test]
    fn figures_are_those_of_display() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(text(number), number.to_string());
            for value in [number as f64, -(number as f64), number as f64 / 1e9] {
                assert_eq!(text(value), value.to_string());
            }
        }
        for value in [0.5, 1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.1 + 0.2] {
            assert_eq!(text(value), value.to_string());
        }
    }
}
