//! One Rust file, parsed: what the rules ask of it.

use std::path::{Path, PathBuf};

use proc_macro2::{Ident, LineColumn, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, ItemUse, Signature, Visibility};

use crate::Result;

pub(super) struct Source {
    /// Relative to the repository.
    pub(super) shown: PathBuf,
    pub(super) text: String,
    /// Tests, examples and fuzz targets are users, and need none.
    pub(super) is_production: bool,
    /// Without its unit tests.
    code: syn::File,
    /// The names in `#[cfg(test)] mod name;`.
    pub(super) test_modules: Vec<String>,
}

pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) length: usize,
}

/// An item, method or associated item.
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) is_exported: bool,
}

/// The paths of a file, in segments.
#[derive(Default)]
pub(super) struct Paths {
    /// Each path of a `use`, with the name that it brings into scope.
    pub(super) uses: Vec<Use>,
    /// Of two or more segments, in expressions, types and macros.
    pub(super) inline: Vec<Vec<String>>,
}

pub(super) struct Use {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) is_export: bool,
}

impl Source {
    pub(super) fn parse(shown: &Path, text: String, is_production: bool) -> Result<Source> {
        let parsed = syn::parse_file(&text);
        let mut code = parsed.map_err(|e| format!("{}: {e}", shown.display()))?;
        let mut tests = WithoutTests::default();
        tests.visit_file_mut(&mut code);
        let test_modules = tests.modules;
        Ok(Source { shown: shown.to_owned(), text, is_production, code, test_modules })
    }

    /// Up to the last item that is not a unit test.
    pub(super) fn lines(&self) -> usize {
        self.code.items.iter().map(|item| item.span().end().line).max().unwrap_or(0)
    }

    /// With a body.
    pub(super) fn functions(&self) -> Vec<Function> {
        let mut functions = Functions::default();
        functions.visit_file(&self.code);
        functions.0
    }

    pub(super) fn definitions(&self) -> Vec<Definition> {
        let mut definitions = Definitions::default();
        definitions.visit_file(&self.code);
        definitions.0
    }

    pub(super) fn paths(&self) -> Paths {
        let mut paths = Paths::default();
        paths.visit_file(&self.code);
        let mut code = self.code.clone();
        WithoutUses { only_exports: false }.visit_file_mut(&mut code);
        inline_paths(code.into_token_stream(), &mut paths.inline);
        paths
    }

    /// Every identifier but those of re-exports.
    pub(super) fn words(&self) -> Vec<String> {
        let mut code = self.code.clone();
        WithoutUses { only_exports: true }.visit_file_mut(&mut code);
        let mut words = Vec::new();
        identifiers(code.into_token_stream(), &mut words);
        words
    }

    /// The string literals in the order of the file; of comments only those that are the help of a program.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut code = self.code.clone();
        WithoutComments.visit_file_mut(&mut code);
        let mut texts = Vec::new();
        strings(code.into_token_stream(), &mut texts);
        texts
    }

    /// From where to where each literal of the file reaches, unit tests included.
    pub(super) fn literals(&self) -> Vec<(LineColumn, LineColumn)> {
        let mut found = Vec::new();
        if let Ok(tokens) = self.text.parse() {
            literals(tokens, &mut found);
        }
        found
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().ok();
        let condition = condition.filter(|list| list.path.is_ident("cfg"));
        let text = condition.map(|list| list.tokens.to_string()).unwrap_or_default();
        text == "test" || text.starts_with("all (test") || text.starts_with("all(test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[derive(Default)]
struct WithoutTests {
    modules: Vec<String>,
}

impl WithoutTests {
    fn keep(&mut self, items: &mut Vec<Item>) {
        items.retain(|item| {
            let is_test = is_test(attributes(item));
            if let Item::Mod(module) = item
                && is_test
                && module.content.is_none()
            {
                self.modules.push(module.ident.to_string());
            }
            !is_test
        });
    }
}

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        self.keep(&mut file.items);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            self.keep(items);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| match item {
            syn::ImplItem::Fn(function) => !is_test(&function.attrs),
            syn::ImplItem::Const(constant) => !is_test(&constant.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, item);
    }
}

struct WithoutUses {
    only_exports: bool,
}

impl WithoutUses {
    fn keep(&self, items: &mut Vec<Item>) {
        items.retain(|item| match item {
            Item::Use(item) => self.only_exports && !is_export(item),
            _ => true,
        });
    }
}

impl VisitMut for WithoutUses {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        self.keep(&mut file.items);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            self.keep(items);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            syn::Stmt::Item(Item::Use(item)) => self.only_exports && !is_export(item),
            _ => true,
        });
        visit_mut::visit_block_mut(self, block);
    }

    /// `pub(in crate::plan)` names the module that may see an item; it imports nothing.
    fn visit_visibility_mut(&mut self, visibility: &mut Visibility) {
        if !self.only_exports {
            *visibility = Visibility::Inherited;
        }
    }
}

/// Removes comments and the reasons of lints, but keeps the comments of the types from which clap makes its help.
struct WithoutComments;

impl VisitMut for WithoutComments {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        let is_comment = |attribute: &Attribute| {
            ["allow", "doc", "expect"].iter().any(|name| attribute.path().is_ident(name))
        };
        attributes.retain(|attribute| !is_comment(attribute));
    }

    fn visit_item_struct_mut(&mut self, item: &mut syn::ItemStruct) {
        if !is_help(&item.attrs) {
            visit_mut::visit_item_struct_mut(self, item);
        }
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        if !is_help(&item.attrs) {
            visit_mut::visit_item_enum_mut(self, item);
        }
    }
}

fn is_help(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let lists = derives.filter_map(|derive| derive.meta.require_list().ok());
    let mut names = Vec::new();
    lists.for_each(|list| identifiers(list.tokens.clone(), &mut names));
    names.iter().any(|name| ["Args", "Parser", "Subcommand", "ValueEnum"].contains(&name.as_str()))
}

fn is_export(item: &ItemUse) -> bool {
    !matches!(item.vis, Visibility::Inherited)
}

#[derive(Default)]
struct Functions(Vec<Function>);

impl Functions {
    fn add(&mut self, signature: &Signature, body: Span) {
        let line = signature.fn_token.span.start().line;
        let length = body.end().line - line + 1;
        self.0.push(Function { name: signature.ident.to_string(), line, length });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[derive(Default)]
struct Definitions(Vec<Definition>);

impl Definitions {
    fn add(&mut self, name: &Ident, visibility: Option<&Visibility>) {
        let is_exported = matches!(visibility, Some(Visibility::Public(_)));
        let line = name.span().start().line;
        self.0.push(Definition { name: name.to_string(), line, is_exported });
    }
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.add(&item.ident, Some(&item.vis)),
            Item::Enum(item) => self.add(&item.ident, Some(&item.vis)),
            Item::Fn(item) => self.add(&item.sig.ident, Some(&item.vis)),
            Item::Static(item) => self.add(&item.ident, Some(&item.vis)),
            Item::Struct(item) => self.add(&item.ident, Some(&item.vis)),
            Item::Trait(item) => self.add(&item.ident, Some(&item.vis)),
            Item::Type(item) => self.add(&item.ident, Some(&item.vis)),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Const(item) => self.add(&item.ident, Some(&item.vis)),
            syn::ImplItem::Fn(item) => self.add(&item.sig.ident, Some(&item.vis)),
            syn::ImplItem::Type(item) => self.add(&item.ident, Some(&item.vis)),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        match item {
            syn::TraitItem::Const(item) => self.add(&item.ident, None),
            syn::TraitItem::Fn(item) => self.add(&item.sig.ident, None),
            syn::TraitItem::Type(item) => self.add(&item.ident, None),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        leaves(&item.tree, &mut Vec::new(), is_export(item), &mut self.uses);
    }
}

fn leaves(tree: &syn::UseTree, prefix: &mut Vec<String>, is_export: bool, found: &mut Vec<Use>) {
    let mut leaf = |last: Option<&Ident>, name: &Ident| {
        let path = prefix.iter().cloned().chain(last.map(Ident::to_string)).collect();
        found.push(Use { path, name: name.to_string(), is_export });
    };
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            leaves(&path.tree, prefix, is_export, found);
            prefix.pop();
        }
        // `{self}` stands for the path before it, under that path's own name.
        syn::UseTree::Name(name) if name.ident == "self" => {
            if let Some(own) = prefix.last().map(|own| Ident::new(own, Span::call_site())) {
                leaf(None, &own);
            }
        }
        syn::UseTree::Name(name) => leaf(Some(&name.ident), &name.ident),
        syn::UseTree::Rename(rename) if rename.ident == "self" => leaf(None, &rename.rename),
        syn::UseTree::Rename(rename) => leaf(Some(&rename.ident), &rename.rename),
        syn::UseTree::Glob(_) => leaf(None, &Ident::new("_", Span::call_site())),
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| leaves(tree, prefix, is_export, found));
        }
    }
}

/// Tokens, not syntax trees: paths in macros count too.
fn inline_paths(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    let mut end = |path: &mut Vec<String>| {
        let path = std::mem::take(path);
        if path.len() > 1 {
            found.push(path);
        }
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    end(&mut path);
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            other => {
                end(&mut path);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    groups.push(group.stream());
                }
            }
        }
    }
    end(&mut path);
    groups.into_iter().for_each(|group| inline_paths(group, found));
}

fn identifiers(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Group(group) => identifiers(group.stream(), found),
            _ => {}
        }
    }
}

fn strings(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                found.extend(text.map(|text| text.value()));
            }
            TokenTree::Group(group) => strings(group.stream(), found),
            _ => {}
        }
    }
}

fn literals(tokens: TokenStream, found: &mut Vec<(LineColumn, LineColumn)>) {
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                found.push((literal.span().start(), literal.span().end()));
            }
            TokenTree::Group(group) => literals(group.stream(), found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::parse(Path::new("a.rs"), text.to_owned(), true).expect("it is Rust")
    }

    /// Proves that unit tests are left out, and that their files are named.
    #[test]
    fn tests_are_left_out() {
        let source = source(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {\n}\n#[cfg(test)]\nmod more;\n\
             struct S;\nimpl S {\n #[cfg(test)]\n fn d() {}\n}\n",
        );
        let names: Vec<_> = source.functions().into_iter().map(|function| function.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(source.test_modules, ["more"]);
        assert_eq!(source.lines(), 14);
    }

    /// Proves where functions begin and how long they are; declarations have no length.
    #[test]
    fn functions_have_lengths() {
        let text = "trait T { fn declared(&self) -> [u8; 4]; }\n/// It.\nfn long(a: [u8; 3]) {\n    if a {\n    }\n}\n";
        let found: Vec<_> = source(text).functions();
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(found, [("long", 3, 4)]);
    }

    /// Proves that paths are found in groups, expressions and macros, and that a visibility is not one.
    #[test]
    fn paths_of_all_kinds() {
        let text = "use crate::{x::{self, Z as Y}, w};\npub(in crate::plan) fn f() { crate::y::g(); m!(a::b) }\n";
        let paths = source(text).paths();
        let uses: Vec<_> =
            paths.uses.iter().map(|u| (u.path.join("::"), u.name.as_str())).collect();
        let expected = [("crate::x", "x"), ("crate::x::Z", "Y"), ("crate::w", "w")];
        assert_eq!(uses, expected.map(|(path, name)| (path.to_owned(), name)));
        let mut inline: Vec<_> = paths.inline.iter().map(|path| path.join("::")).collect();
        inline.sort();
        assert_eq!(inline, ["a::b", "crate::y::g"]);
    }
}
