//! The guard of one request: checks what callers count, and keeps what is to be said.

use std::cell::RefCell;
use std::sync::Arc;

use crate::config::{Bounds, Config};
use crate::disk_usage::DiskUsage;
use crate::specs::{Flag, Threshold, ThresholdSpec, Unit, Values};

/// A refusal. The text is the answer's, with the code of an invalid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

/// What a guardrail says: to the client as a warning of the response, and to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    /// The log has it as an error.
    pub is_failure: bool,
}

/// Belongs to one request. An exempt one has no configuration, so each check is one branch.
#[derive(Debug, Default)]
pub struct Guard {
    config: Option<Arc<Config>>,
    said: RefCell<Vec<Said>>,
    /// Tables of the system may be read and written at any level, or else an operator without a login could not undo a wrong setting.
    spares_system: bool,
    disk_usage: DiskUsage,
}

/// A text with the guardrail's name and reason (`Guardrail.decorateMessage`).
fn decorated(name: &str, reason: Option<&str>, text: &str) -> String {
    let violated = format!("Guardrail {name} violated: {text}");
    match reason {
        None => violated,
        Some(reason) if text.ends_with('.') => format!("{violated} {reason}"),
        Some(reason) => format!("{violated}. {reason}"),
    }
}

/// A spec's text with its placeholders filled. Names may contain braces, so the text is read once.
fn filled(text: &str, parts: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else { break };
        let part = parts.iter().find(|(known, _)| *known == name);
        out.push_str(part.map_or("", |(_, part)| part));
        rest = after;
    }
    out.push_str(rest);
    out
}

impl ThresholdSpec {
    /// The message about a value, of a warning or of a failure.
    pub fn message(&self, is_warning: bool, what: &str, value: i64, threshold: i64) -> String {
        let unit = if self.unit == Unit::Percent { "%" } else { "" };
        let (value, threshold) = (format!("{value}{unit}"), format!("{threshold}{unit}"));
        let (text, level) = match is_warning {
            true => (self.warning, "warning"),
            false => (self.failure, "failure"),
        };
        let parts =
            [("what", what), ("value", &value), ("threshold", &threshold), ("level", level)];
        decorated(self.name, self.reason, &filled(text, &parts))
    }

    /// What is to be said of a value; `None` if it is within both bounds.
    pub fn judge(&self, bounds: Bounds, value: i64, what: &str) -> Option<Said> {
        let violates = |threshold: &i64| match self.is_minimum {
            true => value < *threshold,
            false => value > *threshold,
        };
        if let Some(threshold) = bounds.fail.filter(violates) {
            let text = self.message(false, what, value, threshold);
            return Some(Said { text, is_failure: true });
        }
        let threshold = bounds.warn.filter(violates)?;
        Some(Said { text: self.message(true, what, value, threshold), is_failure: false })
    }
}

impl Guard {
    /// `None`: the request is exempt.
    pub fn new(config: Option<Arc<Config>>) -> Guard {
        Guard { config, ..Guard::default() }
    }

    /// The same, which allows any level for the system's own tables.
    #[must_use]
    pub fn sparing_system(self) -> Guard {
        Guard { spares_system: true, ..self }
    }

    #[must_use]
    pub(crate) fn with_disk_usage(self, disk_usage: DiskUsage) -> Guard {
        Guard { disk_usage, ..self }
    }

    pub fn spares_system(&self) -> bool {
        self.spares_system
    }

    /// Whether any check can say anything.
    pub fn is_on(&self) -> bool {
        self.config.is_some()
    }

    /// A guard with the same limits that has said nothing, for a part of the request on another thread.
    pub fn fresh(&self) -> Guard {
        Guard::new(self.config.clone())
    }

    pub fn bounds(&self, threshold: Threshold) -> Bounds {
        self.config.as_ref().map_or(Bounds::default(), |config| config.bounds(threshold))
    }

    /// Whether a threshold has a bound.
    pub fn watches(&self, threshold: Threshold) -> bool {
        self.bounds(threshold) != Bounds::default()
    }

    /// What was said until now, in its order.
    pub fn take_said(&self) -> Vec<Said> {
        self.said.take()
    }

    /// Adds what a part of the request has said.
    pub fn say(&self, mut said: Vec<Said>) {
        self.said.borrow_mut().append(&mut said);
    }

    fn fail(&self, text: String) -> Result<(), Violation> {
        self.say(vec![Said { text: text.clone(), is_failure: true }]);
        Err(Violation(text))
    }

    fn warn(&self, text: String) {
        self.say(vec![Said { text, is_failure: false }]);
    }

    /// Compares a number with the thresholds of a guardrail. `what` names the thing in the message.
    pub fn check(&self, threshold: Threshold, value: i64, what: &str) -> Result<(), Violation> {
        match self.watches(threshold) {
            false => Ok(()),
            true => self.check_within(threshold, self.bounds(threshold), value, what),
        }
    }

    fn check_within(
        &self,
        threshold: Threshold,
        bounds: Bounds,
        value: i64,
        what: &str,
    ) -> Result<(), Violation> {
        match threshold.spec().judge(bounds, value, what) {
            None => Ok(()),
            Some(Said { text, is_failure: true }) => self.fail(text),
            Some(Said { text, is_failure: false }) => {
                self.warn(text);
                Ok(())
            }
        }
    }

    /// Compares a timestamp with what may be written at `now`. Both in microseconds since the epoch.
    pub fn check_timestamp(&self, timestamp: i64, now: i64, table: &str) -> Result<(), Violation> {
        if !self.is_on() {
            return Ok(());
        }
        let later = |distance: i64| now.saturating_add(distance);
        let earlier = |distance: i64| now.saturating_sub(distance);
        // A threshold before 1970 is off, as in Cassandra.
        let moved = |bounds: Bounds, by: &dyn Fn(i64) -> i64| Bounds {
            warn: bounds.warn.map(by).filter(|threshold| *threshold > 0),
            fail: bounds.fail.map(by).filter(|threshold| *threshold > 0),
        };
        let latest = moved(self.bounds(Threshold::MaximumTimestamp), &later);
        let earliest = moved(self.bounds(Threshold::MinimumTimestamp), &earlier);
        self.check_within(Threshold::MaximumTimestamp, latest, timestamp, table)?;
        self.check_within(Threshold::MinimumTimestamp, earliest, timestamp, table)
    }

    /// Refuses a write, or warns of it, while the node's data takes too much of its disk.
    pub fn check_disk(&self) -> Result<(), Violation> {
        let said = |text: &str| decorated("replica_disk_usage", None, text);
        match self.disk_usage {
            DiskUsage::Stuffed if self.is_on() => {
                self.warn(said("Replica disk usage exceeds warning threshold"));
                Ok(())
            }
            DiskUsage::Full if self.is_on() => {
                self.fail(said("Write request failed because disk usage exceeds failure threshold"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a feature that is off, or warns of it.
    pub fn allow(&self, flag: Flag) -> Result<(), Violation> {
        self.allow_named(flag, flag.spec().feature)
    }

    /// The same, under another name of the feature.
    pub fn allow_named(&self, flag: Flag, feature: &str) -> Result<(), Violation> {
        let Some(config) = &self.config else { return Ok(()) };
        let (spec, switch) = (flag.spec(), config.switch(flag));
        let said = |text: &str| decorated(spec.name, spec.reason, &format!("{feature} is {text}"));
        if !switch.enabled {
            return self.fail(said("not allowed"));
        }
        if switch.warned {
            self.warn(said("not recommended"));
        }
        Ok(())
    }

    /// Whether a feature is allowed, without a word.
    pub fn allows(&self, flag: Flag) -> bool {
        self.config.as_ref().is_none_or(|config| config.switch(flag).enabled)
    }

    /// Refuses words, warns of them, and returns those that the caller must ignore. `given` is in the order in which messages show it.
    pub fn check_values<'a>(
        &self,
        values: Values,
        given: &[&'a str],
    ) -> Result<Vec<&'a str>, Violation> {
        let Some(words) = self.config.as_ref().and_then(|config| config.words(values)) else {
            return Ok(Vec::new());
        };
        let (name, what) = (values.spec().name, values.spec().what);
        let of = |list: &[String]| -> Vec<&'a str> {
            given.iter().filter(|word| list.iter().any(|known| known == *word)).copied().collect()
        };
        let found = of(&words.disallowed);
        if !found.is_empty() {
            let text = format!(
                "Provided values [{}] are not allowed for {what} (disallowed values are: [{}])",
                found.join(", "),
                words.disallowed.join(", ")
            );
            self.fail(decorated(name, None, &text))?;
        }
        let ignored = of(&words.ignored);
        if !ignored.is_empty() {
            let text = format!(
                "Ignoring provided values [{}] as they are not supported for {what} (ignored values are: [{}])",
                ignored.join(", "),
                words.ignored.join(", ")
            );
            self.warn(decorated(name, None, &text));
        }
        // Cassandra removes what is ignored before it looks for words to warn of.
        let warned: Vec<&str> =
            of(&words.warned).into_iter().filter(|word| !ignored.contains(word)).collect();
        if !warned.is_empty() {
            let text = format!(
                "Provided values [{}] are not recommended for {what} (warned values are: [{}])",
                warned.join(", "),
                words.warned.join(", ")
            );
            self.warn(decorated(name, None, &text));
        }
        Ok(ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Given;

    fn guard(settings: &'static [(&'static str, &'static str)]) -> Guard {
        let given = |name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| match text.strip_prefix('[') {
                None => Given::Scalar((*text).to_owned()),
                Some(list) => {
                    Given::List(list.trim_end_matches(']').split(", ").map(str::to_owned).collect())
                }
            })
        };
        let properties = ["comment", "cdc", "compaction"];
        Guard::new(Some(Arc::new(Config::read(&given, &properties, false).expect("good"))))
    }

    fn texts(guard: &Guard) -> Vec<String> {
        guard.take_said().into_iter().map(|said| said.text).collect()
    }

    /// Proves both texts of a threshold, that a value at a threshold is within it, and that a name with braces stays as it is.
    #[test]
    fn thresholds_warn_and_refuse() {
        let guard = guard(&[("tables_warn_threshold", "2"), ("tables_fail_threshold", "3")]);
        assert_eq!(guard.check(Threshold::Tables, 2, "t"), Ok(()));
        assert_eq!(guard.check(Threshold::Tables, 3, "{value}"), Ok(()));
        let refused = "Guardrail tables violated: Cannot have more than 3 tables, aborting the creation of table t";
        assert_eq!(guard.check(Threshold::Tables, 4, "t"), Err(Violation(refused.to_owned())));
        let warned = "Guardrail tables violated: Creating table {value}, current number of tables 3 exceeds warning threshold of 2.";
        assert_eq!(texts(&guard), [warned, refused]);
    }

    /// Proves that a minimum is violated by less, and that percentages and reasons are in the text.
    #[test]
    fn minima_percentages_and_reasons() {
        let minimum = Threshold::MinimumReplicationFactor.spec();
        let bounds = Bounds { warn: Some(3), fail: Some(2) };
        assert_eq!(minimum.judge(bounds, 3, "k"), None);
        let said = minimum.judge(bounds, 1, "k").map(|said| said.text);
        let text = "Guardrail minimum_replication_factor violated: The keyspace k has a replication factor of 1, below the failure threshold of 2.";
        assert_eq!(said.as_deref(), Some(text));
        let text = "Guardrail local_data_disk_usage violated: Local data disk usage 81%(STUFFED) exceeds warning threshold of 80%";
        assert_eq!(Threshold::DataDiskUsage.spec().message(true, "STUFFED", 81, 80), text);
        let text = "Guardrail partition_size violated: Partition p has size 9, this exceeds the failure threshold of 8. Too large partitions can cause performance problems.";
        assert_eq!(Threshold::PartitionSize.spec().message(false, "p", 9, 8), text);
    }

    /// Proves that timestamps are compared with distances from now.
    #[test]
    fn timestamps_are_distances() {
        let guard = guard(&[
            ("maximum_timestamp_fail_threshold", "1s"),
            ("minimum_timestamp_warn_threshold", "1s"),
        ]);
        let now = 10_000_000;
        assert_eq!(guard.check_timestamp(11_000_000, now, "t"), Ok(()));
        assert!(guard.check_timestamp(11_000_001, now, "t").is_err());
        guard.take_said();
        assert_eq!(guard.check_timestamp(8_999_999, now, "t"), Ok(()));
        let text = "Guardrail minimum_timestamp violated: The modification to table t has a timestamp 8999999 before the minimum allowable warning threshold 9000000. Timestamps too far in the past can cause writes can be unexpectedly lost";
        assert_eq!(texts(&guard), [text]);
    }

    /// Proves that disallowed words refuse, and that ignored ones are returned and not warned of again.
    #[test]
    fn words_are_refused_ignored_or_warned_of() {
        let guard = guard(&[
            ("table_properties_warned", "[comment]"),
            ("table_properties_ignored", "[cdc, comment]"),
            ("table_properties_disallowed", "[compaction]"),
        ]);
        assert_eq!(guard.check_values(Values::TableProperties, &["comment"]), Ok(vec!["comment"]));
        assert_eq!(texts(&guard).len(), 1);
        let refused = guard.check_values(Values::TableProperties, &["cdc", "compaction"]);
        let text = "Guardrail table_properties violated: Provided values [compaction] are not allowed for Table Properties (disallowed values are: [compaction])";
        assert_eq!(refused, Err(Violation(text.to_owned())));
    }

    /// Proves that an exempt request is neither refused nor warned.
    #[test]
    fn exempt_requests_hear_nothing() {
        let guard = Guard::default();
        assert_eq!(guard.check(Threshold::Tables, i64::MAX, "t"), Ok(()));
        assert_eq!(guard.allow(Flag::GroupBy), Ok(()));
        assert_eq!(guard.take_said(), []);
    }
}
