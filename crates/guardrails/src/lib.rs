//! Guardrails: limits on what clients ask for, with Apache Cassandra's names, defaults and words (`db.guardrails.Guardrails`).
//!
//! 1. `specs` lists each guardrail once: the name in messages, the settings, the default and the text.
//! 2. A [`Config`] holds the values of all settings. It is validated as a whole and replaced as a whole (`node`).
//! 3. A [`Guard`] belongs to one request. Callers hand it what they counted; it answers with a refusal, or keeps a warning for
//!    the response.
//! 4. Superusers and the node itself are exempt (`node::config_of`). What no request causes, such as the size of a partition that is
//!    flushed, is checked for all, and never refused.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]

mod config;
mod disk_usage;
mod guard;
mod node;
mod specs;

pub use config::{Bounds, Config, Fault, Given};
pub use guard::{Guard, Said, Violation};
pub use node::{Guardrails, LocalGuardrails};
pub use specs::{Flag, FlagSpec, Threshold, ThresholdSpec, Unit, Values, ValuesSpec};
