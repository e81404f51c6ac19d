//! What goes wrong beside crashes: I/O errors, a full disk, slow I/O, steps of the clock.

use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{Fault, FaultRule, Operation, Random, clock};

use crate::world::World;

const PAUSE_MAX_MS: u64 = 200;
const STEP_MAX_SECONDS: u64 = 3_600;
const ROOM_MAX: u64 = 128 << 10;
const SLOW_MAX_MS: u64 = 20;

/// Sets the calendar forward or back.
pub(crate) fn step_clock(world: &World, random: &mut Random) {
    let micros = random.below(STEP_MAX_SECONDS * 1_000_000) as i64;
    let micros = if world.clock_back && random.chance(1, 2) { -micros } else { micros };
    world.note(format_args!("the clock steps by {micros} µs"));
    world.count("clock steps");
    // What has expired by the time before the step stays expired.
    world.seconds();
    world.runtime.clock().step_calendar(micros);
    world.seconds();
}

fn fault(random: &mut Random) -> FaultRule {
    let pick = |random: &mut Random, among: &[&'static str]| {
        among.get(random.below(among.len() as u64) as usize).copied().unwrap_or_default()
    };
    let operations = [
        None,
        Some(Operation::Read),
        Some(Operation::Write),
        Some(Operation::Sync),
        Some(Operation::Create),
        Some(Operation::Rename),
        Some(Operation::SyncDir),
    ];
    let paths = ["", "/commitlog/", "/data/", "Data.db", "Statistics.db", "/ks/", "/system"];
    FaultRule {
        path_contains: pick(random, &paths).to_owned(),
        operation: operations
            .get(random.below(operations.len() as u64) as usize)
            .copied()
            .flatten(),
        skip: random.below(30),
        times: 1 + random.below(3),
        lasting: false,
        fault: if random.chance(1, 4) { Fault::NoSpace } else { Fault::DeviceError },
    }
}

/// Arms faults of the disk until it is dropped. From then on errors are expected.
pub(crate) async fn disturb(world: Rc<World>) {
    let mut random = world.random();
    loop {
        clock::sleep(Duration::from_millis(random.below(PAUSE_MAX_MS))).await;
        world.set_disturbed(true);
        world.count("faults");
        match random.below(4) {
            0 => {
                let room = random.below(ROOM_MAX);
                world.note(format_args!("the disk has {room} bytes left"));
                world.disk.set_capacity(world.disk.used() + room);
                clock::sleep(Duration::from_millis(random.below(20 * PAUSE_MAX_MS))).await;
                world.disk.set_capacity(None);
                world.note(format_args!("the disk has room again"));
            }
            1 => {
                let slow = Duration::from_millis(random.below(SLOW_MAX_MS));
                world.note(format_args!("I/O takes up to {slow:?}"));
                world.disk.set_latency(Some(slow));
            }
            _ => {
                let rule = fault(&mut random);
                world.note(format_args!("armed: {rule:?}"));
                world.disk.fail_on(rule);
            }
        }
    }
}
