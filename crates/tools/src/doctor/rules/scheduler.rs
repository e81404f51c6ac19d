//! The I/O scheduler, and whether the device is rotational.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let device = facts.machine.as_ref().and_then(|machine| machine.device.as_ref());
    let Some(device) = device else { return Vec::new() };
    let shown = |file: &str, value: &str| format!("{} is {value}", device.setting(file).display());
    let mut found = Vec::new();
    if device.is_scheduled_in_vain() {
        let scheduler = device.scheduler.as_deref().unwrap_or("?");
        found.push(Finding {
            severity: Severity::Warning,
            kind: "scheduler",
            of: device.node(),
            what: format!("{scheduler} sorts requests for heads that this device does not have"),
            evidence: vec![shown("scheduler", scheduler), shown("rotational", "0")],
            bytes_per_query: None,
            cost: "CPU and waiting time of every request, no bytes".to_owned(),
            cure: vec![format!("echo none > {}", device.setting("scheduler").display())],
        });
    }
    if device.rotational == Some(true) {
        found.push(Finding {
            severity: Severity::Note,
            kind: "scheduler",
            of: device.node(),
            what: "the kernel takes the device for a spinning disk".to_owned(),
            evidence: vec![shown("rotational", "1")],
            bytes_per_query: None,
            cost: "if it does spin: a seek, about 10 ms, for every chunk that no cache has; virtual disks only seem to".to_owned(),
            cure: vec![format!(
                "echo 0 > {}   # if it is an SSD, or a virtual disk on one",
                device.setting("rotational").display()
            )],
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use halcyon_io::KernelVersion;
    use halcyon_io::device::BlockDevice;

    use super::*;
    use crate::doctor::facts::Machine;

    /// Proves which schedulers are findings on which devices.
    #[test]
    fn schedulers() {
        let kinds = |scheduler: &str, rotational: &str| -> Vec<(Severity, String)> {
            let (scheduler, rotational) = (scheduler.to_owned(), rotational.to_owned());
            let queue = |file: &str| match file {
                "scheduler" => Some(scheduler.clone()),
                "rotational" => Some(rotational.clone()),
                _ => None,
            };
            let machine = Machine {
                directory: "/data".into(),
                kernel: KernelVersion::parse("6.12.0", ""),
                device: Some(BlockDevice::parse("sda", queue)),
                file_system: None,
                alignment: None,
            };
            let facts = Facts { machine: Some(machine), ..Facts::default() };
            examine(&facts).into_iter().map(|f| (f.severity, f.cure[0].clone())).collect()
        };
        let echo = "echo none > /sys/block/sda/queue/scheduler".to_owned();
        assert_eq!(kinds("none mq-deadline [bfq]", "0"), [(Severity::Warning, echo)]);
        assert_eq!(kinds("[none] mq-deadline", "0"), []);
        assert_eq!(kinds("none [mq-deadline]", "1").len(), 1);
        assert_eq!(kinds("[bfq]", "1")[0].0, Severity::Note);
    }
}
