//! `password_policy` of Cassandra 6.0: what passwords must be like. Off unless it is set.

use std::sync::Arc;

use halcyon_access::{PasswordPolicy, PasswordRules};

use super::Values;
use super::error::{Error, Result};
use super::file::Node;
use super::value::boolean;

const KEY: &str = "password_policy";
const VALIDATOR: (&str, &str) = ("validator_class_name", "CassandraPasswordValidator");
const GENERATOR: (&str, &str) = ("generator_class_name", "CassandraPasswordGenerator");
const DETAILED: &str = "detailed_messages";
const MAX_LENGTH: &str = "max_length";
const SEQUENCE_LENGTH: &str = "illegal_sequence_length";
/// Cassandra's: the length that no password may exceed, and the shortest sequence that can be looked for.
const LONGEST: usize = 1000;
const SHORTEST_SEQUENCE: usize = 3;
/// Kinds of characters, of which one more has to be satisfied than `characteristic_…` says.
const KINDS: usize = 4;

type Rule = fn(&mut PasswordRules) -> &mut usize;

/// What `…_warn` and `…_fail` set.
const RULES: [(&str, Rule); 6] = [
    ("characteristic", |rules| &mut rules.characteristics),
    ("length", |rules| &mut rules.length),
    ("upper_case", |rules| &mut rules.upper_case),
    ("lower_case", |rules| &mut rules.lower_case),
    ("digit", |rules| &mut rules.digit),
    ("special", |rules| &mut rules.special),
];

fn wrong(parameter: &str, value: &str, allowed: &str) -> Error {
    Error::Wrong {
        key: format!("{KEY}.{parameter}"),
        value: value.to_owned(),
        allowed: allowed.to_owned(),
    }
}

fn refused<T>(text: String) -> Result<T> {
    Err(Error::Refused(format!("{KEY}: {text}")))
}

impl Values {
    pub(super) fn password_policy(&self) -> Result<Option<Arc<PasswordPolicy>>> {
        let Some(Node::Map(parameters)) = self.node(KEY) else { return Ok(None) };
        let mut policy = PasswordPolicy::default();
        let mut is_validated = false;
        for (name, node) in parameters {
            let value = node.scalar().unwrap_or_default();
            match name.as_str() {
                name if name == VALIDATOR.0 => {
                    is_validated = is_class(name, value, (VALIDATOR.1, "NoOpValidator"))?;
                }
                name if name == GENERATOR.0 => {
                    policy.generates = is_class(name, value, (GENERATOR.1, "NoOpGenerator"))?;
                }
                DETAILED => {
                    let read = boolean(value);
                    policy.detailed_messages =
                        read.ok_or_else(|| wrong(DETAILED, value, "true or false"))?;
                }
                MAX_LENGTH => policy.max_length = count(name, value)?,
                SEQUENCE_LENGTH => policy.illegal_sequence_length = count(name, value)?,
                name => set_rule(&mut policy, name, value)?,
            }
        }
        check(&mut policy)?;
        Ok(is_validated.then(|| Arc::new(policy)))
    }
}

fn count(name: &str, value: &str) -> Result<usize> {
    value.parse().map_err(|_| wrong(name, value, "a number"))
}

/// Whether the class that does something is named.
fn is_class(name: &str, value: &str, (class, none): (&str, &str)) -> Result<bool> {
    match value.rsplit('.').next() {
        Some(found) if found == class => Ok(true),
        Some("") => Ok(false),
        Some(found) if found == none => Ok(false),
        _ => Err(wrong(name, value, &format!("{class} or {none} (others are not supported)"))),
    }
}

fn set_rule(policy: &mut PasswordPolicy, name: &str, value: &str) -> Result<()> {
    let of_level = [("_warn", &mut policy.warn), ("_fail", &mut policy.fail)];
    for (level, rules) in of_level {
        let rule = RULES.iter().find(|(rule, _)| name.strip_suffix(level) == Some(*rule));
        if let Some((_, rule)) = rule {
            *rule(rules) = count(name, value)?;
            return Ok(());
        }
    }
    refused(format!("{name} is not supported"))
}

/// The words are Cassandra's (`CassandraPasswordConfiguration.validateParameters`).
fn check(policy: &mut PasswordPolicy) -> Result<()> {
    if policy.max_length > LONGEST {
        return refused(format!("{MAX_LENGTH} can not be greater than {LONGEST}"));
    }
    if policy.illegal_sequence_length < SHORTEST_SEQUENCE {
        return refused(format!(
            "Illegal sequence length can not be lower than {SHORTEST_SEQUENCE}."
        ));
    }
    if policy.max_length <= policy.warn.length {
        let (longest, warn) = (policy.max_length, policy.warn.length);
        return refused(format!(
            "{MAX_LENGTH} of value {longest} is less or equal to length_warn of value {warn}"
        ));
    }
    for (name, rule) in RULES {
        let (warn, fail) = (*rule(&mut policy.warn), *rule(&mut policy.fail));
        if name == "characteristic" && warn.max(fail) >= KINDS {
            return refused(format!(
                "{name}_warn and {name}_fail can not be bigger than {}",
                KINDS - 1
            ));
        }
        if warn <= fail {
            return refused(format!(
                "{name}_warn of value {warn} is less or equal to {name}_fail of value {fail}"
            ));
        }
    }
    Ok(())
}
