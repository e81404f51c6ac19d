use super::record::Spread;

#[test]
fn spreads() {
    let spread = Spread { median: 2.5, min: 1.0, max: 9.0 };
    assert_eq!(Spread::of([9.0, 2.0, 1.0, 3.0]), spread);
    assert_eq!(Spread::of([7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    assert_eq!(Spread::of([]), Spread::default());
}
