use std::time::Duration;

use halcyon_model::CqlType;
use halcyon_schema::function::UserFunction;
use halcyon_syntax::Error;

use super::Modules;
use crate::limits::{Allowed, SlowCalls};

const LIMIT: Duration = Duration::from_millis(300);

fn allowed(slow: &SlowCalls) -> Allowed<'_> {
    Allowed { fail: LIMIT, warn: Duration::from_nanos(1), slow }
}

/// What every module of version 1 has.
const FIRST: &str = r#"(memory (export "memory") 1) (global (export "_scylla_abi") i32 (i32.const 16)) (data (i32.const 16) "\01\00\00\00")"#;
/// An allocator that never takes back, and counts at 8 how often it is asked to.
const SECOND: &str = r#"
    (memory (export "memory") 1) (global (export "_scylla_abi") i32 (i32.const 16)) (data (i32.const 16) "\02\00\00\00")
    (global $next (mut i32) (i32.const 1024))
    (func (export "_scylla_malloc") (param $n i32) (result i32)
        (global.get $next) (global.set $next (i32.add (global.get $next) (local.get $n))))
    (func (export "_scylla_free") (param i32)
        (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1))))"#;

fn function(
    arguments: &[CqlType],
    returns: CqlType,
    called_on_null: bool,
    body: &str,
) -> UserFunction {
    UserFunction {
        keyspace: "k".to_owned(),
        name: "f".to_owned(),
        arguments: arguments.iter().map(|of| ("a".to_owned(), of.clone())).collect(),
        returns,
        called_on_null,
        language: "wasm".to_owned(),
        body: format!("(module {body})"),
    }
}

fn number(arguments: &[CqlType], returns: CqlType, body: &str) -> UserFunction {
    function(arguments, returns, false, &format!("{FIRST} {body}"))
}

fn message(error: Error) -> String {
    match error {
        Error::FunctionFailure { message, .. } | Error::InvalidRequest(message) => message,
        other => panic!("{other:?}"),
    }
}

/// Proves that numbers pass as such, null is not passed, and a number outside of its type's range is refused as a result.
#[test]
fn numbers() {
    let modules = Modules::default();
    let fib = number(
        &[CqlType::BigInt],
        CqlType::BigInt,
        r#"(func $fib (export "f") (param $n i64) (result i64)
            (if (i64.lt_s (local.get $n) (i64.const 2)) (then (return (local.get $n))))
            (i64.add (call $fib (i64.sub (local.get $n) (i64.const 1))) (call $fib (i64.sub (local.get $n) (i64.const 2)))))"#,
    );
    assert_eq!(modules.check(&fib, LIMIT), Ok(()));
    let of = |value: Option<&[u8]>| modules.call(&fib, &[value], &allowed(&SlowCalls::default()));
    assert_eq!(of(Some(&20_i64.to_be_bytes())), Ok(Some(6_765_i64.to_be_bytes().to_vec())));
    assert_eq!(of(None), Ok(None));
    assert_eq!(of(Some(&[])), Ok(None));
    let slow = SlowCalls::default();
    assert!(modules.call(&fib, &[Some(&20_i64.to_be_bytes())], &allowed(&slow)).is_ok());
    let warning = "User defined function k.f : (bigint) -> bigint ran longer than 0ms";
    assert_eq!(slow.take(), [warning]);
    let late = "java.util.concurrent.TimeoutException: User defined function k.f : (bigint) -> bigint ran longer than 300ms";
    assert_eq!(message(of(Some(&60_i64.to_be_bytes())).unwrap_err()), late);

    let small = |returns| {
        let same = r#"(func (export "f") (param i32) (result i32) (local.get 0))"#;
        number(&[CqlType::Int], returns, same)
    };
    let call = |of: &UserFunction, value: i32| {
        modules.call(of, &[Some(&value.to_be_bytes())], &allowed(&SlowCalls::default()))
    };
    assert_eq!(call(&small(CqlType::SmallInt), -2), Ok(Some(vec![0xFF, 0xFE])));
    assert_eq!(call(&small(CqlType::Boolean), 7), Ok(Some(vec![1])));
    let outside = message(call(&small(CqlType::TinyInt), 128).unwrap_err());
    assert_eq!(outside, "128 is not in the range of TinyInt");
    let doubled = r#"(func (export "f") (param f32 f64) (result f64) (f64.add (f64.promote_f32 (local.get 0)) (local.get 1)))"#;
    let doubled = number(&[CqlType::Float, CqlType::Double], CqlType::Double, doubled);
    let (first, second) = (1.5_f32.to_be_bytes(), 2.25_f64.to_be_bytes());
    let values = [Some(&first[..]), Some(&second)];
    let expected = Ok(Some(3.75_f64.to_be_bytes().to_vec()));
    assert_eq!(modules.call(&doubled, &values, &allowed(&SlowCalls::default())), expected);
}

/// Proves that serialized values and null pass in both versions, however large, and that a result must lie in memory.
#[test]
fn spans() {
    let modules = Modules::default();
    let large = vec![b'x'; 200_000];
    for (abi, called_on_null) in [(FIRST, false), (FIRST, true), (SECOND, false), (SECOND, true)] {
        let same = r#"(func (export "f") (param i64) (result i64) (local.get 0))"#;
        let same =
            function(&[CqlType::Text], CqlType::Text, called_on_null, &format!("{abi} {same}"));
        assert_eq!(modules.check(&same, LIMIT), Ok(()));
        for value in [&b""[..], b"abc", &large] {
            if abi == SECOND && value.len() > 60_000 {
                continue;
            }
            assert_eq!(
                modules.call(&same, &[Some(value)], &allowed(&SlowCalls::default())),
                Ok(Some(value.to_vec()))
            );
        }
        assert_eq!(modules.call(&same, &[None], &allowed(&SlowCalls::default())), Ok(None));
    }
    let null = |arguments: &str| {
        let body =
            format!(r#"{FIRST} (func (export "f") {arguments} (result i64) (i64.const -1))"#);
        function(&[], CqlType::Int, true, &body)
    };
    assert_eq!(modules.call(&null(""), &[], &allowed(&SlowCalls::default())), Ok(None));
    let far = r#"(func (export "f") (result i64) (i64.const 0x40000fffe))"#;
    let far = function(&[], CqlType::Int, true, &format!("{FIRST} {far}"));
    let message = message(modules.call(&far, &[], &allowed(&SlowCalls::default())).unwrap_err());
    assert_eq!(message, "a result of 4 bytes at 65534 is outside of memory");
}

/// Proves that a state goes from row to row, that rows with null are left out unless they are asked for, and that calls share nothing.
#[test]
fn states() {
    let modules = Modules::default();
    let sum = number(
        &[CqlType::Int, CqlType::Int],
        CqlType::Int,
        r#"(global $calls (mut i32) (i32.const 0))
        (func (export "f") (param i32 i32) (result i32)
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (i32.add (i32.mul (global.get $calls) (i32.const 100)) (i32.add (local.get 0) (local.get 1))))"#,
    );
    let rows: Vec<Option<Vec<u8>>> =
        [Some(1_i32), None, Some(3)].map(|row| row.map(|row| row.to_be_bytes().to_vec())).into();
    let state = 10_i32.to_be_bytes();
    let (mut last, mut done) = (Some(state.to_vec()), 0);
    while done < rows.len() {
        let (made, count) = modules
            .fold(
                &sum,
                last.as_deref(),
                (&rows[done..], rows.len() - done),
                &allowed(&SlowCalls::default()),
            )
            .expect("fold");
        (last, done) = (made, done + count);
    }
    assert_eq!(last, Some(214_i32.to_be_bytes().to_vec()));
}

/// Proves that what cannot be called is refused when it is made, and why.
#[test]
fn refusals() {
    let modules = Modules::default();
    let good = r#"(func (export "f") (param i32) (result i32) (local.get 0))"#;
    let import =
        |from: &str| format!(r#"(import "{from}" "g" (func (result i32))) {FIRST} {good}"#);
    let turns = r#"(func $s (loop (br 0))) (start $s)"#;
    let cases = [
        ("(".to_owned(), "expected"),
        (good.to_owned(), "the module exports no global \"_scylla_abi\""),
        (FIRST.to_owned(), "the module exports no function \"f\""),
        (
            format!(r#"{FIRST} (func (export "f") (param i64) (result i32) (i32.const 1))"#),
            "\"f\" is (i64) -> i32, should be (i32) -> i32",
        ),
        (import("env"), "it imports env.g: there are only functions of wasi_snapshot_preview1"),
        (format!("{FIRST} {good} {turns}"), "fuel"),
        (
            format!("{FIRST} {good}").replace("\\01", "\\03"),
            "version 3 of _scylla_abi is not known",
        ),
        (format!("{FIRST} {good}").replace("\\01", "\\02"), "no function \"_scylla_malloc\""),
        (FIRST.replace("\") 1)", "\") 1000)") + good, "memory"),
        (
            format!("{FIRST} {good}").replace("i32.const 16)) ", "i32.const 65534)) "),
            "out of bounds",
        ),
        (format!("{FIRST} {}", "(func ".repeat(100_000)), "expected"),
    ];
    for (body, why) in cases {
        let function = function(&[CqlType::Int], CqlType::Int, false, &body);
        let message = message(modules.check(&function, LIMIT).unwrap_err());
        let begin = "Could not compile function 'k.f' from WebAssembly source: ";
        assert!(message.starts_with(begin) && message.contains(why), "{message} for {why}");
    }
    let imported = number(&[CqlType::Int], CqlType::Int, good);
    let wasi = import("wasi_snapshot_preview1");
    let wasi = UserFunction { body: format!("(module {wasi})"), ..imported };
    assert_eq!(modules.check(&wasi, LIMIT), Ok(()));
}

/// Proves that a body's recursion, memory and traps end the call with a reason.
#[test]
fn limits() {
    let modules = Modules::default();
    for (body, why) in [
        (r#"(func $f (export "f") (result i32) (call $f))"#, "stack"),
        (r#"(func (export "f") (result i32) (unreachable))"#, "unreachable"),
        (r#"(func (export "f") (result i32) (i32.load (i32.const 0x7fffffff)))"#, "out of bounds"),
        (r#"(func (export "f") (result i32) (memory.grow (i32.const 4096)))"#, ""),
    ] {
        let made =
            modules.call(&number(&[], CqlType::Int, body), &[], &allowed(&SlowCalls::default()));
        if why.is_empty() {
            assert_eq!(made, Ok(Some((-1_i32).to_be_bytes().to_vec())));
        } else {
            let message = message(made.unwrap_err());
            assert!(message.contains(why), "{message}");
        }
    }
}

/// Proves that a function of any size is called: one that were compiled at its first call would take more fuel for that than a call has
/// at once, and could not be resumed.
#[test]
fn a_large_function() {
    let modules = Modules::default();
    let adds = "i32.const 1 i32.add ".repeat(12_000);
    let large = format!(r#"(func (export "f") (param i32) (result i32) local.get 0 {adds})"#);
    let large = number(&[CqlType::Int], CqlType::Int, &large);
    assert_eq!(modules.check(&large, LIMIT), Ok(()));
    let called =
        modules.call(&large, &[Some(&5_i32.to_be_bytes())], &allowed(&SlowCalls::default()));
    assert_eq!(called, Ok(Some(12_005_i32.to_be_bytes().to_vec())));
}
