//! What modules may import: the part of `wasi_snapshot_preview1` that compilers link into every module, without a system behind it.

use wasmi::{Caller, Extern, ExternType, Linker, Module, StoreLimits, Val};

const WASI: &str = "wasi_snapshot_preview1";
/// `errno.badf`: there is no such file. Compilers' start code asks for files until it has this answer.
const NO_FILE: i32 = 8;
/// `errno.nosys`
const NOTHING: i32 = 52;

/// Offers every function that a module imports, or says which one there is not.
pub(super) fn offer(linker: &mut Linker<StoreLimits>, module: &Module) -> Result<(), String> {
    // A module may import a function more than once.
    linker.allow_shadowing(true);
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        let (WASI, ExternType::Func(of)) = (from, import.ty()) else {
            return Err(format!("it imports {from}.{name}: there are only functions of {WASI}"));
        };
        let called = name.to_owned();
        let answered = linker.func_new(WASI, name, of.clone(), move |caller, inputs, outputs| {
            let answer = answer(caller, &called, inputs)?;
            if let [output @ Val::I32(_)] = outputs {
                *output = Val::I32(answer);
            }
            Ok(())
        });
        answered.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// An `errno`.
fn answer(
    mut caller: Caller<'_, StoreLimits>,
    name: &str,
    inputs: &[Val],
) -> Result<i32, wasmi::Error> {
    match name {
        "proc_exit" => Err(wasmi::Error::new("the module has ended itself (proc_exit)")),
        "args_get" | "environ_get" => Ok(0),
        "args_sizes_get" | "environ_sizes_get" => {
            let Some(memory) = caller.get_export("memory").and_then(Extern::into_memory) else {
                return Ok(NOTHING);
            };
            for place in inputs.iter().filter_map(Val::i32) {
                memory.write(&mut caller, place.cast_unsigned() as usize, &[0; 4])?;
            }
            Ok(0)
        }
        _ if name.starts_with("fd_") || name.starts_with("path_") => Ok(NO_FILE),
        _ => Ok(NOTHING),
    }
}
