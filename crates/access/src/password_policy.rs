//! What passwords must be like (`password_policy` of Cassandra 6.0: `CassandraPasswordValidator` and `CassandraPasswordGenerator`).
//!
//! 1. Two sets of rules are asked: those that refuse, and those that warn.
//! 2. Lengths, kinds of characters, blanks, and sequences of an alphabet or a keyboard are rules.
//! 3. Of the kinds of characters one more has to be satisfied than the setting says, as in Cassandra.
//!
//! The words are Cassandra's, which are those of the library Passay.

/// The parameters of `password_policy`, under their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordPolicy {
    pub warn: PasswordRules,
    pub fail: PasswordRules,
    pub max_length: usize,
    pub illegal_sequence_length: usize,
    /// Whether refusals and warnings say which rules are broken.
    pub detailed_messages: bool,
    /// `generator_class_name` is `CassandraPasswordGenerator`.
    pub generates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordRules {
    pub characteristics: usize,
    pub length: usize,
    pub upper_case: usize,
    pub lower_case: usize,
    pub digit: usize,
    pub special: usize,
}

impl Default for PasswordPolicy {
    fn default() -> PasswordPolicy {
        let rules = |characteristics, length, each| PasswordRules {
            characteristics,
            length,
            upper_case: each,
            lower_case: each,
            digit: each,
            special: each,
        };
        PasswordPolicy {
            warn: rules(3, 12, 2),
            fail: rules(2, 8, 1),
            max_length: 1000,
            illegal_sequence_length: 5,
            detailed_messages: true,
            generates: false,
        }
    }
}

/// What a policy says of a password. A refusal is the answer of the statement; the warning is said with the guardrail's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    Good,
    Weak(String),
    Refused(String),
}

/// A named sequence, in lower and upper case.
struct Sequence {
    name: &'static str,
    lines: &'static [[&'static str; 2]],
}

const ALPHABETICAL: &str = "alphabetical";
/// In the order in which Cassandra asks for them.
const SEQUENCES: [Sequence; 8] = [
    Sequence {
        name: ALPHABETICAL,
        lines: &[["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]],
    },
    Sequence { name: "numerical", lines: &[["0123456789", "0123456789"]] },
    Sequence {
        name: "QWERTY",
        lines: &[
            ["`1234567890-=", "~!@#$%^&*()_+"],
            ["qwertyuiop[]\\", "QWERTYUIOP{}|"],
            ["asdfghjkl;'", "ASDFGHJKL:\""],
            ["zxcvbnm,./", "ZXCVBNM<>?"],
        ],
    },
    Sequence {
        name: ALPHABETICAL,
        lines: &[[
            "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіѣѳѵ",
            "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯІѢѲѴ",
        ]],
    },
    Sequence {
        name: ALPHABETICAL,
        lines: &[["абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"]],
    },
    Sequence {
        name: ALPHABETICAL,
        lines: &[[
            "aábcčdďeěéfghiíjklmnňoópqrřsštťuúůvwxyýzž",
            "AÁBCČDĎEĚÉFGHIÍJKLMNŇOÓPQRŘSŠTŤUÚŮVWXYÝZŽ",
        ]],
    },
    Sequence {
        name: ALPHABETICAL,
        lines: &[["abcdefghijklmnopqrstuvwxyzäöüß", "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÜẞ"]],
    },
    Sequence {
        name: ALPHABETICAL,
        lines: &[["aąbcćdeęfghijklłmnńoópqrsśtuwxyzźż", "AĄBCĆDEĘFGHIJKLŁMNŃOÓPQRSŚTUWXYZŹŻ"]],
    },
];

const SPECIAL: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

const ADVICE: &str = "You may also use 'GENERATED PASSWORD' upon role creation or alteration.";

/// Tries of the generator, of which a few are enough. Cassandra's.
const TRIES: usize = 100;

fn is_special(c: char) -> bool {
    SPECIAL.contains(c)
        || matches!(c, '\u{a1}'..='\u{bf}' | '×' | '÷' | '\u{2013}'..='\u{204a}' | '\u{20a0}'..='\u{20be}')
}

impl PasswordPolicy {
    pub fn judge(&self, password: &str) -> Judgement {
        let broken = |rules: &PasswordRules| self.broken(rules, password);
        let refused = broken(&self.fail);
        if !refused.is_empty() {
            return Judgement::Refused(self.said("error", "not set as it violated", &refused));
        }
        let weak = broken(&self.warn);
        match weak.is_empty() {
            true => Judgement::Good,
            false => {
                let how = "set, however it might not be strong enough according to the";
                Judgement::Weak(self.said("warning", how, &weak))
            }
        }
    }

    fn said(&self, level: &str, how: &str, broken: &[String]) -> String {
        let head = format!("Password was {how} configured password strength policy.");
        match (self.detailed_messages, level) {
            (true, _) => format!(
                "{head} To fix this {level}, the following has to be resolved: {} {ADVICE}",
                broken.join(" ")
            ),
            (false, "error") => format!("{head} {ADVICE}"),
            (false, _) => head,
        }
    }

    fn broken(&self, rules: &PasswordRules, password: &str) -> Vec<String> {
        let mut broken = Vec::new();
        let length = password.encode_utf16().count();
        if length < rules.length {
            broken.push(format!("Password must be {} or more characters in length.", rules.length));
        }
        if length > self.max_length {
            broken.push(format!(
                "Password must be no more than {} characters in length.",
                self.max_length
            ));
        }
        broken.extend(broken_characters(rules, password));
        if password.contains(['\t', '\n', '\u{b}', '\u{c}', '\r', ' ']) {
            broken.push("Password contains a whitespace character.".to_owned());
        }
        for sequence in &SEQUENCES {
            for found in sequences_in(password, sequence, self.illegal_sequence_length) {
                let name = sequence.name;
                broken.push(format!("Password contains the illegal {name} sequence '{found}'."));
            }
        }
        broken
    }

    /// A password that satisfies the rules that warn; `None`: none was found. `random` gives numbers below its argument.
    pub fn generate(&self, random: &mut dyn FnMut(usize) -> usize) -> Option<String> {
        (0..TRIES)
            .map(|_| self.candidate(random))
            .find(|password| self.judge(password) == Judgement::Good)
    }

    fn candidate(&self, random: &mut dyn FnMut(usize) -> usize) -> String {
        let rules = &self.warn;
        let kinds = [
            (UPPER, rules.upper_case),
            (LOWER, rules.lower_case),
            (DIGITS, rules.digit),
            (SPECIAL, rules.special),
        ];
        let any = [UPPER, LOWER, DIGITS, SPECIAL].concat();
        let mut pick = |from: &str| {
            let at = random(from.len());
            from.as_bytes().get(at).map_or('x', |byte| char::from(*byte))
        };
        let mut chars = Vec::with_capacity(rules.length);
        for (from, count) in kinds {
            chars.extend((0..count).map(|_| pick(from)));
        }
        while chars.len() < rules.length {
            chars.push(pick(&any));
        }
        for last in (1..chars.len()).rev() {
            chars.swap(last, random(last + 1));
        }
        chars.into_iter().collect()
    }
}

/// Each kind that has too few characters, and how many kinds are missing.
fn broken_characters(rules: &PasswordRules, password: &str) -> Vec<String> {
    let count = |is: fn(char) -> bool| password.chars().filter(|c| is(*c)).count();
    let kinds = [
        ("uppercase", rules.upper_case, count(char::is_uppercase)),
        ("lowercase", rules.lower_case, count(char::is_lowercase)),
        ("digit", rules.digit, count(|c| c.is_ascii_digit())),
        ("special", rules.special, count(is_special)),
    ];
    let satisfied = kinds.iter().filter(|(_, least, found)| found >= least).count();
    let required = rules.characteristics + 1;
    if satisfied >= required {
        return Vec::new();
    }
    let lacking = kinds.iter().filter(|(_, least, found)| found < least);
    let mut broken: Vec<String> = lacking
        .map(|(kind, least, _)| format!("Password must contain {least} or more {kind} characters."))
        .collect();
    let all = kinds.len();
    broken.push(format!(
        "Password matches {satisfied} of {all} character rules, but {required} are required."
    ));
    broken
}

/// The parts of a password that go along a sequence, forwards or backwards.
fn sequences_in(password: &str, sequence: &Sequence, least: usize) -> Vec<String> {
    let mut found = Vec::new();
    for [lower, upper] in sequence.lines {
        let place = |c: char| {
            let (mut lower, mut upper) = (lower.chars(), upper.chars());
            lower.position(|known| known == c).or_else(|| upper.position(|known| known == c))
        };
        let (mut run, mut before, mut direction) = (String::new(), None, 0);
        // The end of the password ends a run, too.
        for c in password.chars().map(Some).chain([None]) {
            let at = c.and_then(place);
            let step = match (before, at) {
                (Some(before), Some(at)) if at == before + 1 => 1,
                (Some(before), Some(at)) if at + 1 == before => -1,
                _ => 0,
            };
            if step != direction || step == 0 {
                if run.chars().count() >= least {
                    found.push(run.clone());
                }
                let last = run.pop().filter(|_| step != 0);
                run = last.map(String::from).unwrap_or_default();
            }
            run.extend(c.filter(|_| at.is_some()));
            (before, direction) = (at, step);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(broken: &str) -> Judgement {
        Judgement::Refused(format!(
            "Password was not set as it violated configured password strength policy. To fix this error, the following has to be resolved: \
             {broken} You may also use 'GENERATED PASSWORD' upon role creation or alteration."
        ))
    }

    fn weak(broken: &str) -> Judgement {
        Judgement::Weak(format!(
            "Password was set, however it might not be strong enough according to the configured password strength policy. To fix this \
             warning, the following has to be resolved: {broken} You may also use 'GENERATED PASSWORD' upon role creation or alteration."
        ))
    }

    /// Proves what Cassandra 6.0-alpha2 answers to these passwords, word for word.
    #[test]
    fn passwords_are_judged_as_by_cassandra() {
        let policy = PasswordPolicy::default();
        let twice = |name: &str| format!("{name} {name}");
        for (password, expected) in [
            ("Abc1!Abc1!Abc1!Xz", Judgement::Good),
            ("Str0ng!Pa55w#rdXy", Judgement::Good),
            ("漢字漢字Abc1!漢字Xy9#", Judgement::Good),
            (
                "",
                refused(
                    "Password must be 8 or more characters in length. Password must contain 1 or more uppercase characters. Password must \
                     contain 1 or more lowercase characters. Password must contain 1 or more digit characters. Password must contain 1 or \
                     more special characters. Password matches 0 of 4 character rules, but 3 are required.",
                ),
            ),
            ("Abc1!", refused("Password must be 8 or more characters in length.")),
            ("a b c D E 1 2 ! # x", refused("Password contains a whitespace character.")),
            (
                "zyxwv!!98ZA#m",
                refused(&twice("Password contains the illegal alphabetical sequence 'zyxwv'.")),
            ),
            (
                "54321!!zpZAx#m",
                refused(
                    "Password contains the illegal numerical sequence '54321'. Password contains the illegal QWERTY sequence '54321'.",
                ),
            ),
            (
                "aBcDeF1234!!qwertZ",
                refused(
                    "Password contains the illegal alphabetical sequence 'aBcDeF'. Password contains the illegal QWERTY sequence 'qwert'. \
                     Password contains the illegal alphabetical sequence 'aBcDeF'.",
                ),
            ),
            (
                "12345678901234567890",
                refused(
                    "Password must contain 1 or more uppercase characters. Password must contain 1 or more lowercase characters. Password \
                     must contain 1 or more special characters. Password matches 1 of 4 character rules, but 3 are required. Password \
                     contains the illegal numerical sequence '123456789'. Password contains the illegal numerical sequence '0123456789'. \
                     Password contains the illegal QWERTY sequence '1234567890'. Password contains the illegal QWERTY sequence '1234567890'.",
                ),
            ),
            ("Abc1!Abc1!", weak("Password must be 12 or more characters in length.")),
            (
                "STR0NG!PA55W#RDXY",
                weak(
                    "Password must contain 2 or more lowercase characters. Password matches 3 of 4 character rules, but 4 are required.",
                ),
            ),
            (
                "Ünïcode!Pa55w0rdXY",
                weak(
                    "Password must contain 2 or more special characters. Password matches 3 of 4 character rules, but 4 are required.",
                ),
            ),
        ] {
            assert_eq!(policy.judge(password), expected, "{password}");
        }
    }

    /// Proves that messages without details say none.
    #[test]
    fn messages_are_short_without_details() {
        let policy = PasswordPolicy { detailed_messages: false, ..PasswordPolicy::default() };
        let text = "Password was not set as it violated configured password strength policy. You may also use 'GENERATED PASSWORD' upon role creation or alteration.";
        assert_eq!(policy.judge("abc"), Judgement::Refused(text.to_owned()));
        let text = "Password was set, however it might not be strong enough according to the configured password strength policy.";
        assert_eq!(policy.judge("Abc1!Abc1!"), Judgement::Weak(text.to_owned()));
    }

    /// Proves that what is generated satisfies the policy.
    #[test]
    fn generated_passwords_are_good() {
        let policy = PasswordPolicy::default();
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        for _ in 0..50 {
            let password = policy.generate(&mut random).expect("one");
            assert_eq!((password.len(), policy.judge(&password)), (12, Judgement::Good));
        }
    }
}
