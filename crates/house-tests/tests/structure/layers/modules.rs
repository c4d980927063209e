//! The crates as trees of modules, and the paths in them.

use std::collections::{BTreeMap, HashMap};

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ItemMod, ItemUse, Lit, UseTree, VisRestricted};

/// The text of every file, by its path below the project's root.
pub(crate) type Sources = BTreeMap<String, String>;

/// Whether a crate starts at this file: each one just below `tests` or `examples` is a crate of
/// its own.
pub(crate) fn is_root(file: &str) -> bool {
    let (folder, name) = split(file);
    matches!(folder, "tests" | "examples") || name == "lib.rs" || name == "main.rs"
}

/// A file's folder and its name in there.
fn split(file: &str) -> (&str, &str) {
    file.rsplit_once('/').expect("each tree is a folder")
}

/// A path below `folder`, where `..` may lead out of it again.
fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// A module of a crate: a file, or a part of one in braces.
pub(crate) struct Module {
    pub(crate) file: String,
    root: usize,
    parent: Option<usize>,
    /// The module just below the crate's root that this one is or lies in.
    top: Option<String>,
    children: HashMap<String, usize>,
    /// Modules that a `use` brought into scope, also one inside a function.
    aliases: HashMap<String, usize>,
}

/// A path as it stands in a module.
struct Written {
    scope: usize,
    line: usize,
    path: Vec<String>,
    /// What a `use` calls it from then on: `*` for all that is in it.
    name: Option<String>,
}

/// One file's mention of another.
pub(crate) struct Arrow {
    pub(crate) from: String,
    /// `None` for what the crate's root re-exports of another crate.
    pub(crate) to: Option<String>,
    /// The module below the crate's root that was named, `None` for the root itself.
    pub(crate) top: Option<String>,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// Every crate of the sources as a tree of modules, and the paths in them. It is also what
/// reads them: `scope` and `folder` are where it stands.
pub(crate) struct Tree<'a> {
    sources: &'a Sources,
    pub(crate) modules: Vec<Module>,
    written: Vec<Written>,
    scope: usize,
    /// Where the files of the modules declared here lie.
    folder: String,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(sources: &'a Sources) -> Self {
        let mut tree = Self {
            sources,
            modules: Vec::new(),
            written: Vec::new(),
            scope: 0,
            folder: String::new(),
        };
        for file in sources.keys().filter(|file| is_root(file)) {
            tree.scope = tree.open(file, None);
            split(file).0.clone_into(&mut tree.folder);
            tree.read(file);
        }
        tree.bind();
        tree
    }

    /// A new module: a crate's root, or `name` in the module where the reader stands.
    fn open(&mut self, file: &str, name: Option<&str>) -> usize {
        let new = self.modules.len();
        let parent = name.map(|_| self.scope);
        let mut module = Module {
            file: file.to_owned(),
            root: new,
            parent,
            top: name.map(str::to_owned),
            children: HashMap::new(),
            aliases: HashMap::new(),
        };
        if let (Some(parent), Some(name)) = (parent, name) {
            let parent = &mut self.modules[parent];
            parent.children.insert(name.to_owned(), new);
            module.root = parent.root;
            module.top = parent.top.clone().or(module.top);
        }
        self.modules.push(module);
        new
    }

    fn read(&mut self, file: &str) {
        let parsed = syn::parse_file(&self.sources[file]);
        self.visit_file(&parsed.unwrap_or_else(|error| panic!("{file}: {error}")));
    }

    /// The file of `mod name;`, and the folder of the modules that it declares.
    fn file_of(&self, item: &ItemMod) -> (String, String) {
        let here = &self.modules[self.scope].file;
        let below = join(&self.folder, &item.ident.to_string());
        let (places, folder) = match item.attrs.iter().find_map(path_attribute) {
            Some(path) => {
                let place = join(split(here).0, &path);
                let folder = split(&place).0.to_owned();
                (vec![place], folder)
            }
            None => (
                vec![format!("{below}.rs"), format!("{below}/mod.rs")],
                below,
            ),
        };
        let file = places
            .iter()
            .find(|place| self.sources.contains_key(*place));
        let file = file.unwrap_or_else(|| panic!("{here} declares a module: no {places:?}"));
        (file.clone(), folder)
    }

    fn note(&mut self, at: &Ident, path: Vec<String>, name: Option<String>) {
        self.written.push(Written {
            scope: self.scope,
            line: at.span().start().line,
            path,
            name,
        });
    }

    /// Every path of a `use`, `before` being what stands in front of this part of it.
    fn import(&mut self, tree: &UseTree, before: &[Ident]) {
        let with = |ident: &Ident| match before {
            [.., _] if ident == "self" => before.to_vec(),
            _ => [before, std::slice::from_ref(ident)].concat(),
        };
        let (path, name) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|t| self.import(t, before));
            }
            UseTree::Name(name) => (with(&name.ident), None),
            UseTree::Rename(to) => (with(&to.ident), Some(to.rename.to_string())),
            UseTree::Glob(_) => (before.to_vec(), Some("*".to_owned())),
        };
        if let Some(last) = path.last() {
            let name = name.unwrap_or_else(|| last.to_string());
            self.note(last, texts(&path), Some(name));
        }
    }

    /// The paths among a macro's tokens, `before` being what stands in front of these braces
    /// of a `use`.
    fn scan(&mut self, tokens: &[TokenTree], before: &[String]) {
        let mut rest = tokens;
        while let [first, after @ ..] = rest {
            rest = match first {
                TokenTree::Group(group) => {
                    self.scan(&trees(group.stream()), &[]);
                    after
                }
                // The new name that a `use` gives is no path.
                TokenTree::Ident(word) if word == "as" && !before.is_empty() => {
                    after.get(1..).unwrap_or_default()
                }
                TokenTree::Ident(word) => self.scan_path(word, after, before),
                // What follows a `::` here is not where a path starts.
                _ => match after_colons(rest) {
                    Some((TokenTree::Ident(_), after)) => after,
                    _ => after,
                },
            };
        }
    }

    /// Notes the path that starts with `first`; what is left of the tokens.
    fn scan_path<'t>(
        &mut self,
        first: &Ident,
        mut rest: &'t [TokenTree],
        before: &[String],
    ) -> &'t [TokenTree] {
        let mut path = [before, &[first.to_string()]].concat();
        while let Some((TokenTree::Ident(next), after)) = after_colons(rest) {
            path.push(next.to_string());
            rest = after;
        }
        match after_colons(rest) {
            Some((TokenTree::Group(group), after)) => {
                self.scan(&trees(group.stream()), &path);
                return after;
            }
            Some((TokenTree::Punct(star), _)) if star.as_char() == '*' => {
                self.note(first, path, Some("*".to_owned()));
            }
            _ if path.len() > 1 => self.note(first, path, None),
            _ => {}
        }
        rest
    }

    /// Gives the modules the names that `use` brings into them, until no more are found: a
    /// name may come by way of another.
    fn bind(&mut self) {
        loop {
            let known = self.aliases();
            for written in &self.written {
                let Some(name) = &written.name else { continue };
                let Some((target, [])) = self.resolve(written.scope, &written.path) else {
                    continue;
                };
                let names = match name.as_str() {
                    "*" => self.visible(target, written.scope),
                    name => vec![(name.to_owned(), target)],
                };
                let aliases = &mut self.modules[written.scope].aliases;
                for (name, target) in names {
                    aliases.entry(name).or_insert(target);
                }
            }
            if self.aliases() == known {
                return;
            }
        }
    }

    fn aliases(&self) -> usize {
        self.modules.iter().map(|m| m.aliases.len()).sum()
    }

    /// The modules that `use target::*` brings into `scope`. The aliases of another file are
    /// left out: they are its re-exports.
    fn visible(&self, target: usize, scope: usize) -> Vec<(String, usize)> {
        let (from, to) = (&self.modules[target], &self.modules[scope]);
        let aliases = from.aliases.iter().filter(|_| from.file == to.file);
        let names = from.children.iter().chain(aliases);
        names
            .map(|(name, module)| (name.clone(), *module))
            .collect()
    }

    /// The module that `name` leads to from `module`, in the eyes of the file `home`.
    fn step(&self, module: usize, name: &str, home: &str) -> Option<usize> {
        let here = &self.modules[module];
        match name {
            "crate" => Some(here.root),
            "self" => Some(module),
            "super" => here.parent,
            _ => {
                let alias = || here.aliases.get(name).filter(|_| here.file == home);
                here.children.get(name).or_else(alias).copied()
            }
        }
    }

    /// The last module on a path, and what of the path is an item in it. `None` where the path
    /// starts outside the crate.
    fn resolve<'p>(&self, scope: usize, path: &'p [String]) -> Option<(usize, &'p [String])> {
        let home = &self.modules[scope].file;
        let (first, mut rest) = path.split_first()?;
        let mut module = self.step(scope, first, home)?;
        while let [name, after @ ..] = rest
            && let Some(next) = self.step(module, name, home)
        {
            (module, rest) = (next, after);
        }
        Some((module, rest))
    }

    /// Whether a module has this name from another crate.
    fn is_foreign(&self, module: usize, name: &str) -> bool {
        self.written.iter().any(|w| {
            w.scope == module
                && w.name.as_deref() == Some(name)
                && self.resolve(module, &w.path).is_none()
        })
    }

    /// Every path from one file to another.
    pub(crate) fn arrows(&self) -> Vec<Arrow> {
        let arrows = self.written.iter().filter_map(|w| self.arrow(w));
        arrows.filter(|a| a.to.as_ref() != Some(&a.from)).collect()
    }

    fn arrow(&self, written: &Written) -> Option<Arrow> {
        let (target, rest) = self.resolve(written.scope, &written.path)?;
        let module = &self.modules[target];
        let foreign = rest.first().filter(|name| {
            // Only the root stands for another crate so, as in `pub use other as name`.
            module.parent.is_none() && self.is_foreign(target, name)
        });
        let mut path = written.path.join("::");
        if written.name.as_deref() == Some("*") {
            path += "::*";
        }
        Some(Arrow {
            from: self.modules[written.scope].file.clone(),
            to: foreign.is_none().then(|| module.file.clone()),
            top: foreign.or(module.top.as_ref()).cloned(),
            line: written.line,
            path,
        })
    }
}

impl<'ast> Visit<'ast> for Tree<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outer = (self.scope, self.folder.clone());
        let name = item.ident.to_string();
        if let Some((_, items)) = &item.content {
            let file = self.modules[self.scope].file.clone();
            self.scope = self.open(&file, Some(&name));
            self.folder = join(&self.folder, &name);
            items.iter().for_each(|item| self.visit_item(item));
        } else {
            let (file, folder) = self.file_of(item);
            self.scope = self.open(&file, Some(&name));
            self.folder = folder;
            self.read(&file);
        }
        (self.scope, self.folder) = outer;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<Ident> = path.segments.iter().map(|s| s.ident.clone()).collect();
        if path.leading_colon.is_none() && words.len() > 1 {
            self.note(&words[0], texts(&words), None);
        }
        visit::visit_path(self, path);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.scan(&trees(tokens.clone()), &[]);
    }

    // Where an item may be seen is no knowledge of that place.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}

fn texts(words: &[Ident]) -> Vec<String> {
    words.iter().map(Ident::to_string).collect()
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

/// What follows a `::` that these tokens start with.
fn after_colons(tokens: &[TokenTree]) -> Option<(&TokenTree, &[TokenTree])> {
    let is_colon = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ':');
    match tokens {
        [a, b, next, after @ ..] if is_colon(a) && is_colon(b) => Some((next, after)),
        _ => None,
    }
}

/// The text of `#[path = "..."]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    let pair = attribute.meta.require_name_value().ok()?;
    match &pair.value {
        Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
