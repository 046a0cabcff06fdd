//! The content of a linked component: its core modules, the instances of them, and the provider of each import.
//!
//! It follows names and decides nothing.

use super::error::{MergeError, Result};
use std::collections::{BTreeSet, HashMap};
use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentAlias, Data, Element, ExternalKind, FuncType, FunctionBody, Global,
    Instance as Written, MemoryType, Parser, Payload, TableType, TypeRef,
};

/// The longest chain from an import to its provider. The linker makes chains of three.
const STEPS_MAX: u32 = 32;

/// The export that identifies the module with the stand-ins for functions of later modules, and the import of the
/// module that fills it.
const SHIM_TABLE: &str = "$imports";

/// A core module in its parts.
#[derive(Default)]
pub(super) struct Core<'a> {
    pub types: Vec<FuncType>,
    pub imports: Imports<'a>,
    /// The types of its own functions.
    pub functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<Global<'a>>,
    pub exports: HashMap<&'a str, (IndexKind, u32)>,
    pub elements: Vec<Element<'a>>,
    pub bodies: Vec<FunctionBody<'a>>,
    pub data: Vec<Data<'a>>,
    pub start: Option<u32>,
}

/// The imports of a core module, one list for each kind.
#[derive(Default)]
pub(super) struct Imports<'a> {
    pub functions: Vec<(&'a str, &'a str, u32)>,
    tables: Vec<(&'a str, &'a str)>,
    memories: Vec<(&'a str, &'a str)>,
    globals: Vec<(&'a str, &'a str)>,
}

impl<'a> Imports<'a> {
    /// The number of imports of a kind; the module's own items come after them.
    pub(super) fn count(&self, sort: IndexKind) -> u32 {
        let count = match sort {
            IndexKind::Function => self.functions.len(),
            IndexKind::Table => self.tables.len(),
            IndexKind::Memory => self.memories.len(),
            IndexKind::Global => self.globals.len(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn name(&self, sort: IndexKind, index: u32) -> Option<(&'a str, &'a str)> {
        let index = index as usize;
        match sort {
            IndexKind::Function => self.functions.get(index).map(|(module, name, _)| (*module, *name)),
            IndexKind::Table => self.tables.get(index).copied(),
            IndexKind::Memory => self.memories.get(index).copied(),
            IndexKind::Global => self.globals.get(index).copied(),
        }
    }
}

/// The kind of item that an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum IndexKind {
    Function,
    Table,
    Memory,
    Global,
}

impl IndexKind {
    fn of(kind: ExternalKind) -> Result<Self> {
        match kind {
            ExternalKind::Func => Ok(Self::Function),
            ExternalKind::Table => Ok(Self::Table),
            ExternalKind::Memory => Ok(Self::Memory),
            ExternalKind::Global => Ok(Self::Global),
            other => Err(MergeError::new(format_args!("it has an item of a kind that is not known here: {other:?}"))),
        }
    }
}

/// The provider of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Provider<'a> {
    /// An instance, by an item that is its module's own.
    Own { instance: usize, index: u32 },
    /// The host, by the names under which a module imports it.
    Host { module: &'a str, name: &'a str },
}

enum Instance<'a> {
    /// An instance of a module, with an instance for each module that it imports from.
    Of { module: usize, given: HashMap<&'a str, usize> },
    /// Items of other instances under new names.
    Items(HashMap<&'a str, (IndexKind, usize)>),
}

/// An entry in an index space of the component.
#[derive(Clone, Copy)]
enum Item<'a> {
    Export { instance: usize, name: &'a str },
    Host,
}

#[derive(Default)]
struct Spaces<'a> {
    functions: Vec<Item<'a>>,
    tables: Vec<Item<'a>>,
    memories: Vec<Item<'a>>,
    globals: Vec<Item<'a>>,
}

impl<'a> Spaces<'a> {
    fn of(&mut self, sort: IndexKind) -> &mut Vec<Item<'a>> {
        match sort {
            IndexKind::Function => &mut self.functions,
            IndexKind::Table => &mut self.tables,
            IndexKind::Memory => &mut self.memories,
            IndexKind::Global => &mut self.globals,
        }
    }

    fn get(&self, sort: IndexKind, index: usize) -> Result<Item<'a>> {
        let space = match sort {
            IndexKind::Function => &self.functions,
            IndexKind::Table => &self.tables,
            IndexKind::Memory => &self.memories,
            IndexKind::Global => &self.globals,
        };
        space.get(index).copied().ok_or_else(|| MergeError::new("it names an item that it does not have"))
    }
}

/// A component that was linked of core modules.
#[derive(Default)]
pub(super) struct Linked<'a> {
    modules: Vec<Core<'a>>,
    instances: Vec<Instance<'a>>,
    spaces: Spaces<'a>,
    /// The instance with the stand-ins for later functions, and the one that fills its table.
    shim: Option<usize>,
    filled_by: Option<usize>,
    /// The functions that the component exports: by name, including the functions that clean up after them.
    lifted: Vec<(&'a str, usize)>,
    /// The functions that allocate memory for the host's arguments to those.
    allocators: BTreeSet<usize>,
}

impl<'a> Linked<'a> {
    /// Reads the outermost component of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut linked = Self::default();
        let mut rest = Parser::new(0).parse_all(bytes);
        while let Some(payload) = rest.next() {
            match payload? {
                Payload::ModuleSection { .. } => linked.modules.push(Core::read(&mut rest)?),
                Payload::ComponentSection { .. } => skip(&mut rest)?,
                Payload::InstanceSection(section) => {
                    for instance in section {
                        linked.instance(instance?)?;
                    }
                }
                Payload::ComponentAliasSection(section) => {
                    for alias in section {
                        linked.alias(&alias?)?;
                    }
                }
                Payload::ComponentCanonicalSection(section) => {
                    for function in section {
                        linked.canonical(&function?)?;
                    }
                }
                _ => {}
            }
        }
        Ok(linked)
    }

    fn instance(&mut self, written: Written<'a>) -> Result<()> {
        let instance = match written {
            Written::Instantiate { module_index, args } => {
                let module = module_index as usize;
                let given: HashMap<_, _> = args.iter().map(|arg| (arg.name, arg.index as usize)).collect();
                let core = self.modules.get(module).ok_or_else(|| MergeError::new("it has no such module"))?;
                if core.exports.contains_key(SHIM_TABLE) {
                    self.shim = Some(self.instances.len());
                } else if core.imports.tables.iter().any(|(_, name)| *name == SHIM_TABLE) {
                    self.filled_by = given.values().next().copied();
                }
                Instance::Of { module, given }
            }
            Written::FromExports(items) => {
                let items = items.iter().map(|item| Ok((item.name, (IndexKind::of(item.kind)?, item.index as usize))));
                Instance::Items(items.collect::<Result<_>>()?)
            }
        };
        self.instances.push(instance);
        Ok(())
    }

    fn alias(&mut self, alias: &ComponentAlias<'a>) -> Result<()> {
        if let ComponentAlias::CoreInstanceExport { kind, instance_index, name } = *alias {
            let item = Item::Export { instance: instance_index as usize, name };
            self.spaces.of(IndexKind::of(kind)?).push(item);
        }
        Ok(())
    }

    fn canonical(&mut self, function: &CanonicalFunction) -> Result<()> {
        let CanonicalFunction::Lift { core_func_index, options, .. } = function else {
            self.spaces.functions.push(Item::Host);
            return Ok(());
        };
        let Some(name) = self.export_name(*core_func_index)?.filter(|name| is_of_an_interface(name)) else {
            return Ok(());
        };
        self.lifted.push((name, *core_func_index as usize));
        for option in options {
            match *option {
                CanonicalOption::PostReturn(index) => {
                    let name = self.export_name(index)?;
                    let name = name.ok_or_else(|| MergeError::new("a function that cleans up is none of a library"))?;
                    self.lifted.push((name, index as usize));
                }
                CanonicalOption::Realloc(index) => {
                    self.allocators.insert(index as usize);
                }
                CanonicalOption::UTF8 | CanonicalOption::Memory(_) => {}
                _ => return Err(MergeError::new(format_args!("`{name}` is exported in a way that is not known here"))),
            }
        }
        Ok(())
    }

    fn export_name(&self, function: u32) -> Result<Option<&'a str>> {
        Ok(match self.spaces.get(IndexKind::Function, function as usize)? {
            Item::Export { name, .. } => Some(name),
            Item::Host => None,
        })
    }

    /// The instances of libraries in the order of their creation, with their modules.
    pub(super) fn libraries(&self) -> impl Iterator<Item = (usize, &Core<'a>)> {
        self.instances.iter().enumerate().filter_map(|(at, instance)| match instance {
            Instance::Of { module, given } if Some(at) != self.shim && !self.fills_the_shim(given) => {
                Some((at, &self.modules[*module]))
            }
            _ => None,
        })
    }

    fn fills_the_shim(&self, given: &HashMap<&str, usize>) -> bool {
        self.filled_by.is_some_and(|items| given.values().any(|instance| *instance == items))
    }

    /// The component's exports, by the names that a core module must have for them.
    pub(super) fn exported(&self) -> Result<Vec<(&'a str, Provider<'a>)>> {
        let mut exported = Vec::new();
        for (name, index) in &self.lifted {
            exported.push((*name, self.lifted_from(*index)?));
        }
        if let Some(allocator) = self.allocators.first() {
            let provider = self.lifted_from(*allocator)?;
            for other in &self.allocators {
                if self.lifted_from(*other)? != provider {
                    return Err(MergeError::new("its exports allocate by different functions"));
                }
            }
            exported.push(("cabi_realloc", provider));
        }
        Ok(exported)
    }

    fn lifted_from(&self, function: usize) -> Result<Provider<'a>> {
        let found = self.item(IndexKind::Function, function, STEPS_MAX)?;
        found.ok_or_else(|| MergeError::new("it exports a function of the host"))
    }

    /// The provider of the item at `index` of `instance`; it can be the instance itself.
    pub(super) fn provider(&self, instance: usize, sort: IndexKind, index: u32) -> Result<Provider<'a>> {
        self.provider_within(instance, sort, index, STEPS_MAX)
    }

    fn provider_within(&self, instance: usize, sort: IndexKind, index: u32, steps: u32) -> Result<Provider<'a>> {
        let Some(Instance::Of { module, given }) = self.instances.get(instance) else {
            return Err(MergeError::new("an instance without a module has items of its own"));
        };
        let Some((from, name)) = self.modules[*module].imports.name(sort, index) else {
            return Ok(Provider::Own { instance, index });
        };
        let giver = given.get(from).ok_or_else(|| MergeError::new(format_args!("no module provides `{from}`")))?;
        let found = self.export(*giver, sort, name, steps)?;
        Ok(found.unwrap_or(Provider::Host { module: from, name }))
    }

    /// The provider of an instance's export; none: the host.
    fn export(&self, instance: usize, sort: IndexKind, name: &str, steps: u32) -> Result<Option<Provider<'a>>> {
        let steps = steps.checked_sub(1).ok_or_else(|| MergeError::new(format_args!("`{name}` leads in a circle")))?;
        let missing = || MergeError::new(format_args!("no module provides `{name}`"));
        match self.instances.get(instance).ok_or_else(missing)? {
            Instance::Items(items) => {
                let (found, index) = items.get(name).ok_or_else(missing)?;
                if *found != sort {
                    return Err(missing());
                }
                self.item(sort, *index, steps)
            }
            Instance::Of { .. } if Some(instance) == self.shim => {
                self.export(self.filled_by.ok_or_else(missing)?, sort, name, steps)
            }
            Instance::Of { module, .. } => {
                let (_, index) = self.modules[*module].exports.get(name).ok_or_else(missing)?;
                let found = self.provider_within(instance, sort, *index, steps)?;
                Ok(matches!(found, Provider::Own { .. }).then_some(found))
            }
        }
    }

    fn item(&self, sort: IndexKind, index: usize, steps: u32) -> Result<Option<Provider<'a>>> {
        match self.spaces.get(sort, index)? {
            Item::Export { instance, name } => self.export(instance, sort, name, steps),
            Item::Host => Ok(None),
        }
    }
}

type Payloads<'p, 'a> = &'p mut dyn Iterator<Item = wasmparser::Result<Payload<'a>>>;

impl<'a> Core<'a> {
    /// Reads the payloads of one module.
    fn read(payloads: Payloads<'_, 'a>) -> Result<Self> {
        let mut core = Self::default();
        for payload in payloads {
            match payload? {
                Payload::TypeSection(section) => {
                    let types = section.into_iter_err_on_gc_types();
                    core.types = types.collect::<wasmparser::Result<_>>()?;
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        core.import(&import?)?;
                    }
                }
                Payload::FunctionSection(section) => core.functions = all(section)?,
                Payload::TableSection(section) => {
                    for table in section {
                        core.tables.push(table?.ty);
                    }
                }
                Payload::MemorySection(section) => core.memories = all(section)?,
                Payload::GlobalSection(section) => core.globals = all(section)?,
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        core.exports.insert(export.name, (IndexKind::of(export.kind)?, export.index));
                    }
                }
                Payload::ElementSection(section) => core.elements = all(section)?,
                Payload::CodeSectionEntry(body) => core.bodies.push(body),
                Payload::DataSection(section) => core.data = all(section)?,
                Payload::StartSection { func, .. } => core.start = Some(func),
                Payload::TagSection(_) => return Err(MergeError::new("a library throws exceptions")),
                Payload::End(_) => return Ok(core),
                _ => {}
            }
        }
        Err(MergeError::new("a module has no end"))
    }

    fn import(&mut self, import: &wasmparser::Import<'a>) -> Result<()> {
        let name = (import.module, import.name);
        match import.ty {
            TypeRef::Func(of) => self.imports.functions.push((import.module, import.name, of)),
            TypeRef::Table(_) => self.imports.tables.push(name),
            TypeRef::Memory(_) => self.imports.memories.push(name),
            TypeRef::Global(_) => self.imports.globals.push(name),
            TypeRef::Tag(_) | TypeRef::FuncExact(_) => {
                return Err(MergeError::new(format_args!("`{}` is imported in a way that is not known", import.name)));
            }
        }
        Ok(())
    }
}

fn all<'a, T: wasmparser::FromReader<'a>>(section: wasmparser::SectionLimited<'a, T>) -> Result<Vec<T>> {
    Ok(section.into_iter().collect::<wasmparser::Result<_>>()?)
}

/// Skips a component within the component.
fn skip(payloads: Payloads<'_, '_>) -> Result<()> {
    let mut depth = 1_u32;
    for payload in payloads {
        match payload? {
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(());
        }
    }
    Err(MergeError::new("a component has no end"))
}

/// True when the name of a core module's export is that of a function of an interface, as in
/// `longhaul:plugin/tool@0.1.0#call`, and not that of a helper.
fn is_of_an_interface(export: &str) -> bool {
    export.split_once('#').is_some_and(|(interface, _)| interface.contains('/'))
}
