//! Finds files of one crate that import each other in a circle: none of them can be read, tested or moved without the others.
//!
//! 1. A file is a module. Its imports are the paths in its code that begin with `crate`, `super`, `self` or the name of a child module.
//! 2. A path is resolved to the file that defines its item: modules are followed by name, `use` by the item.
//! 3. A `pub use` is not an import itself: a parent that declares and re-exports its children does not depend on them.
//! 4. Circles are the strongly connected components of this graph.
//!
//! Methods are called without a path, so a file may depend on another without naming it. That is not found.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::source::{Source, Use};

/// How many files of a crate are in circles. A number may fall, not rise, and a crate that is not listed has none: these circles are older
/// than the check. Each is closed by a central type (`Shard`) that calls the files which take it as a parameter.
const KNOWN: [(&str, usize); 1] = [("crates/engine", 3)];

/// A module's path within its crate; empty for `lib.rs` and `main.rs`.
type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

#[derive(Default)]
struct File {
    shown: String,
    /// Paths that the code names, in segments.
    paths: Vec<Vec<String>>,
    /// The path behind each name in a `use`: child modules may name what their parent imports.
    names: BTreeMap<String, Vec<String>>,
}

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<String, BTreeMap<Module, File>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_production) {
        if let Some((root, module)) = module_of(&source.shown) {
            let file = read(source);
            crates.entry(root).or_default().insert(module, file);
        }
    }
    let findings = crates.iter().flat_map(|(root, files)| {
        let known = KNOWN.iter().find(|(of, _)| of == root).map_or(0, |(_, count)| *count);
        against(root, known, &circles(files))
    });
    findings.collect()
}

/// The crate and the module path of `crates/sstable/src/read/mod.rs`.
fn module_of(path: &Path) -> Option<(String, Module)> {
    let text = path.with_extension("");
    let (root, module) = text.to_str()?.split_once("/src/")?;
    let mut module: Module = module.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        module.pop();
    }
    Some((root.to_owned(), module))
}

fn read(source: &Source) -> File {
    let mut file = File { shown: source.shown.display().to_string(), ..File::default() };
    let paths = source.paths();
    for Use { path, name, is_export } in paths.uses {
        if !is_export {
            file.paths.push(path.clone());
        }
        file.names.insert(name, path);
    }
    file.paths.extend(paths.inline);
    file
}

/// The findings of one crate: its circles, if more files are in them than are known.
fn against(root: &str, known: usize, circles: &[Circle]) -> Vec<String> {
    let count: usize = circles.iter().map(|circle| circle.count).sum();
    let found = circles.iter().map(|Circle { count, example }| {
        format!("{root}: {count} files import each other, e.g. {}", example.join(" → "))
    });
    match count.cmp(&known) {
        Ordering::Greater => found.collect(),
        Ordering::Less => vec![format!("{root}: {count} files are in circles, KNOWN says {known}")],
        Ordering::Equal => Vec::new(),
    }
}

/// A strongly connected component.
struct Circle {
    count: usize,
    /// The shortest circle through its first file.
    example: Vec<String>,
}

fn circles(files: &BTreeMap<Module, File>) -> Vec<Circle> {
    let mut graph = Graph::new();
    for (module, file) in files {
        let targets = file.paths.iter().filter_map(|path| resolve(files, module, path, 0));
        graph.insert(module.clone(), targets.filter(|target| target != module).collect());
    }
    let reach: BTreeMap<&Module, BTreeMap<&Module, &Module>> =
        graph.keys().map(|module| (module, reachable(&graph, module))).collect();
    let shown = |module: &Module| files.get(module).map(|file| file.shown.clone());
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (module, reached) in &reach {
        if !reached.contains_key(*module) || seen.contains(module) {
            continue;
        }
        let returns =
            |other: &&&Module| reach.get(*other).is_some_and(|of| of.contains_key(*module));
        let component: Vec<&Module> = reached.keys().filter(returns).copied().collect();
        let mut example = vec![*module];
        while let Some(before) = example.last().and_then(|last| reached.get(last))
            && before != module
        {
            example.push(before);
        }
        example.push(module);
        let example = example.into_iter().rev().filter_map(shown).collect();
        found.push(Circle { count: component.len(), example });
        seen.extend(component);
    }
    found
}

/// Every module that `from` imports directly or not, with the module before it on the shortest path.
fn reachable<'g>(graph: &'g Graph, from: &'g Module) -> BTreeMap<&'g Module, &'g Module> {
    let mut found = BTreeMap::new();
    let mut left = VecDeque::from([from]);
    while let Some(next) = left.pop_front() {
        for target in graph.get(next).into_iter().flatten() {
            if !found.contains_key(target) {
                found.insert(target, next);
                left.push_back(target);
            }
        }
    }
    found
}

/// The file that defines the item of a path. The depth bounds re-exports that name each other.
fn resolve(
    files: &BTreeMap<Module, File>,
    from: &Module,
    path: &[String],
    depth: u32,
) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut module = match first.as_str() {
        "crate" => Vec::new(),
        "self" => from.clone(),
        "super" => from.split_last()?.1.to_vec(),
        child => {
            let mut module = from.clone();
            module.push(child.to_owned());
            if !files.contains_key(&module) {
                return None;
            }
            module
        }
    };
    while let Some((next, after)) = rest.split_first() {
        if next == "super" {
            module.pop();
        } else {
            let mut child = module.clone();
            child.push(next.clone());
            if !files.contains_key(&child) {
                break;
            }
            module = child;
        }
        rest = after;
    }
    let file = files.get(&module)?;
    let (Some(item), true) = (rest.first(), depth < 8) else { return Some(module) };
    if let Some(behind) = file.names.get(item) {
        return resolve(files, &module, behind, depth + 1);
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(shown: &str, code: &str) -> Source {
        Source::parse(Path::new(shown), code.to_owned(), true).expect("it is Rust")
    }

    /// Proves that a circle through a group, a re-export and an expression is found, and that a parent that only re-exports is in none.
    #[test]
    fn circles_of_files() {
        let sources = [
            source("crates/a/src/lib.rs", "mod x;\nmod y;\npub use x::X;\n"),
            source("crates/a/src/x/mod.rs", "mod inner;\npub use inner::{Y as X, Z};\n"),
            source("crates/a/src/x/inner.rs", "use std::{fmt, io};\nfn f() { crate::y::g() }\n"),
            source("crates/a/src/y.rs", "use crate::{x::{self, Z}, w};\n"),
            source("crates/b/src/lib.rs", "mod p;\nmod q;\nuse p::P;"),
            source("crates/b/src/p.rs", "use super::q::Q;"),
            source("crates/b/src/q.rs", ""),
        ];
        let files = "crates/a/src/x/inner.rs → crates/a/src/y.rs → crates/a/src/x/inner.rs";
        assert_eq!(check(&sources), [format!("crates/a: 2 files import each other, e.g. {files}")]);
        let known =
            |known| against("crates/a", known, &[Circle { count: 2, example: vec![] }]).len();
        assert_eq!((known(1), known(2), known(3)), (1, 0, 1));
    }
}
