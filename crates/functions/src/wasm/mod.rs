//! User-defined functions in WebAssembly: a module in the text format, which exports a function of the same name.
//!
//! Values pass as in modules made for ScyllaDB (its `docs/cql/wasm.rst`, versions 1 and 2), since tools for those exist:
//! - `_scylla_abi`: an exported global, the place in `memory` of a version.
//! - A function that `RETURNS NULL ON NULL INPUT` takes and returns numbers as such (`bigint` i64, `int` and smaller and `boolean` i32,
//!   `float` f32, `double` f64). Everything else, and every value of one that is `CALLED ON NULL INPUT`, is an i64: its length above 32
//!   bits (-1: null), the place of its serialized form below.
//! - Version 1: memory grows for arguments. Version 2: `_scylla_malloc` makes place for them and `_scylla_free` frees the result.
//!
//! Each call has an instance of its own, so no call sees what another one left. There are no files, no clock and no randomness:
//! what the `wasi_snapshot_preview1` interface offers for them answers that there is none.

mod interface;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, now};
use halcyon_io::{caught, panic_point};
use halcyon_schema::function::UserFunction;
use halcyon_syntax::{Error, Result};
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Func, FuncType, Instance, Linker, Memory,
    Module, ResumableCall, Store, StoreLimits, StoreLimitsBuilder, Val, ValType,
};

use self::values::{Form, PAGE};
use super::limits::{Allowed, FOLD_SLICE, Folded, failure};

/// Instructions, about, between two readings of the clock.
const FUEL: u64 = 500_000;
/// What an instance may hold.
const MEMORY_MAX: usize = 32 << 20;
const TABLE_MAX: usize = 10_000;
/// Texts of modules whose compiled form is kept.
const KEPT_BYTES_MAX: usize = 8 << 20;

const ABI: &str = "_scylla_abi";
const MALLOC: &str = "_scylla_malloc";
const FREE: &str = "_scylla_free";

#[derive(Default)]
pub(super) struct Modules(Mutex<Kept>);

/// An engine, and what it has compiled.
struct Kept {
    engine: Engine,
    by_text: HashMap<String, Arc<Module>>,
    bytes: usize,
}

impl Default for Kept {
    fn default() -> Kept {
        let mut config = Config::default();
        config.consume_fuel(true).wasm_memory64(false).wasm_multi_memory(false);
        config.ignore_custom_sections(true).enforced_limits(EnforcedLimits::strict());
        // All of it at once: what is compiled at its first call takes fuel for that, and a call that is resumed there panics.
        config.compilation_mode(CompilationMode::Eager);
        Kept { engine: Engine::new(&config), by_text: HashMap::new(), bytes: 0 }
    }
}

/// Why a call has no result.
enum Trouble {
    Late,
    Other(String),
}

impl<E: std::fmt::Display> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        Trouble::Other(error.to_string())
    }
}

impl Trouble {
    fn of(self, function: &UserFunction, allowed: &Allowed<'_>) -> Error {
        match self {
            Trouble::Late => allowed.late(function),
            Trouble::Other(what) => failure(function, &what),
        }
    }
}

impl Modules {
    /// Does what enters the interpreter. After a panic in there, nothing of it is used again.
    fn enter<T>(&self, job: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let entered = caught(|| {
            panic_point("a WebAssembly function");
            job()
        });
        entered.unwrap_or_else(|_| {
            *self.kept() = Kept::default();
            Err("an internal error has stopped it; the log of the node has more".into())
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }

    /// Compiles it, and refuses what no call could use.
    pub(super) fn check(&self, function: &UserFunction, limit: Duration) -> Result<()> {
        let checked =
            self.enter(|| Call::begin(&*self.module(function)?, function, limit).map(drop));
        checked.map_err(|trouble| {
            let why = match trouble {
                Trouble::Late => "its start takes too long".to_owned(),
                Trouble::Other(what) => what,
            };
            let (keyspace, name) = (&function.keyspace, &function.name);
            Error::InvalidRequest(format!(
                "Could not compile function '{keyspace}.{name}' from WebAssembly source: {why}"
            ))
        })
    }

    pub(super) fn call(
        &self,
        function: &UserFunction,
        arguments: &[Option<&[u8]>],
        allowed: &Allowed<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let called = self.enter(|| one(&*self.module(function)?, function, arguments, allowed));
        called.map_err(|trouble| trouble.of(function, allowed))
    }

    pub(super) fn fold(
        &self,
        function: &UserFunction,
        state: Option<&[u8]>,
        (arguments, rows): (&[Option<Vec<u8>>], usize),
        allowed: &Allowed<'_>,
    ) -> Result<Folded> {
        let folded = self.enter(|| self.fold_rows(function, state, (arguments, rows), allowed));
        folded.map_err(|trouble| trouble.of(function, allowed))
    }

    fn fold_rows(
        &self,
        function: &UserFunction,
        state: Option<&[u8]>,
        (arguments, rows): (&[Option<Vec<u8>>], usize),
        allowed: &Allowed<'_>,
    ) -> Result<Folded, Trouble> {
        let module = self.module(function)?;
        let end = now() + FOLD_SLICE;
        let width = function.arguments.len().saturating_sub(1);
        let mut state = state.map(<[u8]>::to_vec);
        let mut done = 0;
        while done < rows && (done == 0 || now() < end) {
            let row = arguments.get(done * width..).and_then(|rest| rest.get(..width));
            let row = row.unwrap_or_default().iter().map(Option::as_deref);
            done += 1;
            if !function.called_on_null && row.clone().any(|value| value.is_none()) {
                continue;
            }
            let all: Vec<Option<&[u8]>> = [state.as_deref()].into_iter().chain(row).collect();
            state = one(&module, function, &all, allowed)?;
        }
        Ok((state, done))
    }

    fn module(&self, function: &UserFunction) -> Result<Arc<Module>, Trouble> {
        let text = &function.body;
        let mut kept = self.kept();
        if let Some(module) = kept.by_text.get(text) {
            return Ok(Arc::clone(module));
        }
        let engine = kept.engine.clone();
        drop(kept);
        let module = Arc::new(Module::new(&engine, text)?);
        kept = self.kept();
        if kept.bytes + text.len() > KEPT_BYTES_MAX {
            *kept = Kept::default();
        }
        // Others may have compiled it meanwhile, or another engine is in use by now.
        let is_current = Engine::same(&kept.engine, &engine);
        if is_current && kept.by_text.insert(text.clone(), Arc::clone(&module)).is_none() {
            kept.bytes += text.len();
        }
        Ok(module)
    }
}

fn one(
    module: &Module,
    function: &UserFunction,
    arguments: &[Option<&[u8]>],
    allowed: &Allowed<'_>,
) -> Result<Option<Vec<u8>>, Trouble> {
    let forms = function.argument_types().map(|of| Form::of(of, function.called_on_null));
    let forms: Vec<Form> = forms.collect();
    let values = forms.iter().zip(arguments).zip(function.argument_types());
    let values = values.map(|((_, value), of)| value.filter(|value| values::is_value(of, value)));
    let values: Vec<Option<&[u8]>> = values.collect();
    if !function.called_on_null && values.contains(&None) {
        return Ok(None);
    }
    let began = now();
    let mut call = Call::begin(module, function, allowed.fail)?;
    let mut passed = Vec::with_capacity(values.len());
    for (form, value) in forms.iter().zip(values) {
        passed.push(call.pass(*form, value)?);
    }
    let result = call.run(&call.function.clone(), &passed)?;
    let form = Form::of(&function.returns, function.called_on_null);
    let taken = call.take(form, result.first())?;
    allowed.took(function, now() - began);
    Ok(taken)
}

/// An instance, and what of it a call needs.
struct Call {
    store: Store<StoreLimits>,
    function: Func,
    memory: Option<Memory>,
    /// Version 2 has them.
    allocator: Option<(Func, Func)>,
    deadline: Instant,
}

impl Call {
    fn begin(module: &Module, function: &UserFunction, limit: Duration) -> Result<Call, Trouble> {
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY_MAX).table_elements(TABLE_MAX);
        let mut store = Store::new(module.engine(), limits.instances(1).build());
        store.limiter(|limits| limits);
        store.set_fuel(FUEL)?;
        let mut linker = Linker::new(module.engine());
        interface::offer(&mut linker, module)?;
        let instance = linker.instantiate_and_start(&mut store, module)?;
        let memory = instance.get_memory(&store, "memory");
        let found = found(&store, &instance, function)?;
        let allocator = match version(&store, &instance, memory)? {
            1 => None,
            2 => Some(allocator(&store, &instance)?),
            other => return Err(format!("version {other} of {ABI} is not known: 1 or 2").into()),
        };
        let mut call = Call { store, function: found, memory, allocator, deadline: now() + limit };
        if let Some(initialize) = instance.get_func(&call.store, "_initialize") {
            call.run(&initialize, &[])?;
        }
        Ok(call)
    }

    /// Calls a function for as long as there is time.
    fn run(&mut self, function: &Func, inputs: &[Val]) -> Result<Vec<Val>, Trouble> {
        let of = function.ty(&self.store);
        let mut results: Vec<Val> =
            of.results().iter().map(|result| Val::default(*result)).collect();
        self.store.set_fuel(FUEL)?;
        let mut state = function.call_resumable(&mut self.store, inputs, &mut results)?;
        loop {
            match state {
                ResumableCall::Finished => return Ok(results),
                ResumableCall::HostTrap(trap) => return Err(trap.into_host_error().into()),
                ResumableCall::OutOfFuel(_) if now() >= self.deadline => return Err(Trouble::Late),
                ResumableCall::OutOfFuel(paused) => {
                    self.store.set_fuel(FUEL.max(paused.required_fuel()))?;
                    state = paused.resume(&mut self.store, &mut results)?;
                }
            }
        }
    }

    fn pass(&mut self, form: Form, value: Option<&[u8]>) -> Result<Val, Trouble> {
        let Some(value) = value else { return Ok(Val::I64(values::NULL)) };
        if let Some(number) = form.number(value) {
            return Ok(number);
        }
        let place = self.allocate(value.len())?;
        self.memory()?.write(&mut self.store, place as usize, value)?;
        Ok(Val::I64(values::span(value.len(), place)))
    }

    /// The address of as many bytes.
    fn allocate(&mut self, len: usize) -> Result<u32, Trouble> {
        if let Some((malloc, _)) = self.allocator {
            let len = i32::try_from(len)?;
            return match self.run(&malloc, &[Val::I32(len)])?.first() {
                Some(Val::I32(place)) => Ok(place.cast_unsigned()),
                _ => Err(format!("{MALLOC} returned no address").into()),
            };
        }
        let memory = self.memory()?;
        let pages = memory.grow(&mut self.store, len.div_ceil(PAGE) as u64)?;
        Ok(u32::try_from(pages * PAGE as u64)?)
    }

    fn take(&mut self, form: Form, result: Option<&Val>) -> Result<Option<Vec<u8>>, Trouble> {
        let result = result.ok_or_else(|| Trouble::Other("no result".to_owned()))?;
        if let Some(number) = form.bytes(result)? {
            return Ok(Some(number));
        }
        let Val::I64(span) = result else {
            return Err("the function returned no address of its result".into());
        };
        let Some((len, place)) = values::parts(*span) else { return Ok(None) };
        let outside = || format!("a result of {len} bytes at {place} is outside of memory");
        let data = self.memory()?.data(&self.store);
        let value =
            data.get(place..).and_then(|rest| rest.get(..len)).ok_or_else(outside)?.to_vec();
        if let Some((_, free)) = self.allocator {
            let place = u32::try_from(place)?.cast_signed();
            self.run(&free, &[Val::I32(place)])?;
        }
        Ok(Some(value))
    }

    fn memory(&self) -> Result<Memory, Trouble> {
        self.memory.ok_or_else(|| Trouble::Other("the module exports no \"memory\"".to_owned()))
    }
}

/// The function of the same name, if it takes and returns what values of these types are passed as.
fn found(
    store: &Store<StoreLimits>,
    instance: &Instance,
    function: &UserFunction,
) -> Result<Func, Trouble> {
    let name = &function.name;
    let found = instance.get_func(store, name);
    let found = found.ok_or_else(|| format!("the module exports no function \"{name}\""))?;
    let form = |of| Form::of(of, function.called_on_null).passed();
    let arguments: Vec<ValType> = function.argument_types().map(form).collect();
    let expected = FuncType::new(arguments, [form(&function.returns)]);
    let actual = found.ty(store);
    if actual == expected {
        return Ok(found);
    }
    Err(format!("\"{name}\" is {}, should be {}", shown(&actual), shown(&expected)).into())
}

fn version(
    store: &Store<StoreLimits>,
    instance: &Instance,
    memory: Option<Memory>,
) -> Result<u32, Trouble> {
    let global = instance.get_global(store, ABI);
    let global = global.ok_or_else(|| format!("the module exports no global \"{ABI}\""))?;
    let Val::I32(place) = global.get(store) else {
        return Err(format!("\"{ABI}\" is not an i32").into());
    };
    let memory = memory.ok_or("the module exports no \"memory\"")?;
    let mut version = [0; 4];
    memory.read(store, place.cast_unsigned() as usize, &mut version)?;
    Ok(u32::from_le_bytes(version))
}

fn allocator(store: &Store<StoreLimits>, instance: &Instance) -> Result<(Func, Func), Trouble> {
    let of = |name: &str, expected: &FuncType| {
        let found = instance.get_func(store, name).filter(|found| found.ty(store) == *expected);
        found.ok_or_else(|| {
            format!("the module exports no function \"{name}\", {}", shown(expected))
        })
    };
    let malloc = of(MALLOC, &FuncType::new([ValType::I32], [ValType::I32]))?;
    Ok((malloc, of(FREE, &FuncType::new([ValType::I32], []))?))
}

/// `(i32, i64) -> i64`
fn shown(of: &FuncType) -> String {
    let list = |types: &[ValType]| {
        let names: Vec<String> =
            types.iter().map(|of| format!("{of:?}").to_ascii_lowercase()).collect();
        names.join(", ")
    };
    format!("({}) -> {}", list(of.params()), list(of.results()))
}
