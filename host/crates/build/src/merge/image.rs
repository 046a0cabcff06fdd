//! The merged module: the items of all libraries, one library after the other, with new indices.
//!
//! An import from another library becomes that library's item. A function that only calls another through a constant
//! place of the table becomes that other one. A global that nothing sets becomes a constant.

use super::error::{MergeError, Result};
use super::linked::{Core, IndexKind, Linked, Provider};
use std::collections::{HashMap, HashSet};
use wasm_encoder::reencode::{Error as ReencodeError, Reencode, RoundtripReencoder};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    FunctionSection, GlobalSection, GlobalType, ImportSection, MemorySection, Module, StartSection, TableSection,
    TypeSection,
};
use wasmparser::{DataKind, ElementItems, ElementKind, FuncType, Operator};

/// The merged module of all libraries of the component.
pub(super) fn of(linked: &Linked) -> Result<Vec<u8>> {
    let plan = Plan::of(linked)?;
    let mut module = Module::new();
    plan.write(&mut module)?;
    Ok(module.finish())
}

/// A library's own item: the instance, and the index in its module.
type Own = (usize, u32);

/// The new place of every item.
struct Plan<'l, 'a> {
    linked: &'l Linked<'a>,
    libraries: Vec<(usize, &'l Core<'a>)>,
    types: Types,
    /// The host's functions, by their names, with the type.
    imports: Vec<(&'a str, &'a str, u32)>,
    /// The new index of each function that does more than call another one.
    functions: HashMap<Own, u32>,
    globals: HashMap<Own, u32>,
    /// The globals that some function sets.
    set: HashSet<Own>,
    /// The entries of the table when the module starts.
    table: HashMap<u32, Provider<'a>>,
}

/// The types of functions, each once.
#[derive(Default)]
struct Types {
    all: Vec<FuncType>,
    places: HashMap<FuncType, u32>,
}

impl Types {
    fn place(&mut self, of: &FuncType) -> u32 {
        let next = count(self.all.len());
        *self.places.entry(of.clone()).or_insert_with(|| {
            self.all.push(of.clone());
            next
        })
    }
}

impl<'l, 'a> Plan<'l, 'a> {
    fn of(linked: &'l Linked<'a>) -> Result<Self> {
        let mut plan = Self {
            linked,
            libraries: linked.libraries().collect(),
            types: Types::default(),
            imports: Vec::new(),
            functions: HashMap::new(),
            globals: HashMap::new(),
            set: HashSet::new(),
            table: HashMap::new(),
        };
        plan.collect_types_and_imports()?;
        plan.number();
        plan.find_globals_that_are_set()?;
        plan.read_the_table()?;
        Ok(plan)
    }

    fn collect_types_and_imports(&mut self) -> Result<()> {
        let mut known = HashSet::new();
        for (instance, core) in &self.libraries {
            for of in &core.types {
                self.types.place(of);
            }
            for (index, (_, _, of)) in core.imports.functions.iter().enumerate() {
                if let Provider::Host { module, name } =
                    self.linked.provider(*instance, IndexKind::Function, count(index))?
                    && known.insert((module, name))
                {
                    self.imports.push((module, name, self.types.place(type_of(core, *of)?)));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self) {
        let mut function = count(self.imports.len());
        let mut global = 0;
        for (instance, core) in &self.libraries {
            for own in 0..count(core.functions.len()) {
                self.functions.insert((*instance, core.imports.count(IndexKind::Function) + own), function);
                function += 1;
            }
            for own in 0..count(core.globals.len()) {
                self.globals.insert((*instance, core.imports.count(IndexKind::Global) + own), global);
                global += 1;
            }
        }
    }

    fn find_globals_that_are_set(&mut self) -> Result<()> {
        for (instance, core) in &self.libraries {
            for body in &core.bodies {
                for operator in body.get_operators_reader()? {
                    if let Operator::GlobalSet { global_index } = operator? {
                        self.set.insert(own(self.linked.provider(*instance, IndexKind::Global, global_index)?)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn read_the_table(&mut self) -> Result<()> {
        for (instance, core) in &self.libraries {
            for element in &core.elements {
                let ElementKind::Active { offset_expr, .. } = &element.kind else {
                    return Err(MergeError::new("a library has references to functions beside its table"));
                };
                let offset = self.place(*instance, offset_expr)?;
                for (at, function) in functions_of(element)?.into_iter().enumerate() {
                    let provider = self.linked.provider(*instance, IndexKind::Function, function)?;
                    let place = offset.checked_add(count(at));
                    let place = place.ok_or_else(|| MergeError::new("a library writes behind the end of its table"))?;
                    self.table.insert(place, provider);
                }
            }
        }
        Ok(())
    }

    /// The value of a library's constant expression, as a place in the memory or the table.
    fn place(&self, instance: usize, expression: &wasmparser::ConstExpr) -> Result<u32> {
        let mut stack = Vec::new();
        for operator in expression.get_operators_reader() {
            match operator? {
                Operator::I32Const { value } => stack.push(value.cast_unsigned()),
                Operator::GlobalGet { global_index } => stack.push(self.value(instance, global_index)?),
                Operator::I32Add => {
                    let (two, one) = (stack.pop(), stack.pop());
                    stack.extend(one.zip(two).map(|(one, two)| one.wrapping_add(two)));
                }
                Operator::End => {}
                other => return Err(unknown_place(&other)),
            }
        }
        let [place] = stack[..] else { return Err(MergeError::new("a place is computed to no value")) };
        Ok(place)
    }

    /// The value of a global when the module starts. It can only refer to earlier ones, so this ends.
    fn value(&self, instance: usize, index: u32) -> Result<u32> {
        let (instance, index) = own(self.linked.provider(instance, IndexKind::Global, index)?)?;
        let missing = || MergeError::new("it has no such global");
        let core = self.core(instance).ok_or_else(missing)?;
        let global = core.globals.get(index.wrapping_sub(core.imports.count(IndexKind::Global)) as usize);
        self.place(instance, &global.ok_or_else(missing)?.init_expr)
    }

    fn core(&self, instance: usize) -> Option<&'l Core<'a>> {
        self.libraries.iter().find(|(at, _)| *at == instance).map(|(_, core)| *core)
    }

    /// The new index of a function; functions that only call another one are skipped.
    fn function(&self, mut provider: Provider<'a>) -> Result<u32> {
        // A chain longer than the number of functions is a cycle.
        for _ in 0..=self.functions.len() {
            match provider {
                Provider::Host { module, name } => {
                    let at = self.imports.iter().position(|(m, n, _)| (*m, *n) == (module, name));
                    return at.map(count).ok_or_else(|| MergeError::new(format_args!("no module provides `{name}`")));
                }
                Provider::Own { instance, index } => match self.leads_to(instance, index)? {
                    Some(next) => provider = next,
                    None => {
                        let found = self.functions.get(&(instance, index)).copied();
                        return found.ok_or_else(|| MergeError::new("it has no such function"));
                    }
                },
            }
        }
        Err(MergeError::new("a function only calls itself"))
    }

    /// The function that another one calls with its own arguments, if it does nothing else.
    fn leads_to(&self, instance: usize, index: u32) -> Result<Option<Provider<'a>>> {
        let Some(core) = self.core(instance) else { return Ok(None) };
        let own = index.wrapping_sub(core.imports.count(IndexKind::Function)) as usize;
        let (Some(body), Some(of)) = (core.bodies.get(own), core.functions.get(own)) else { return Ok(None) };
        if body.get_locals_reader()?.get_count() > 0 {
            return Ok(None);
        }
        let parameters = type_of(core, *of)?.params().len();
        let mut reader = body.get_operators_reader()?;
        for expected in 0..count(parameters) {
            if !matches!(reader.read()?, Operator::LocalGet { local_index } if local_index == expected) {
                return Ok(None);
            }
        }
        let Operator::I32Const { value } = reader.read()? else { return Ok(None) };
        let Operator::CallIndirect { type_index, .. } = reader.read()? else { return Ok(None) };
        let same = type_of(core, type_index)? == type_of(core, *of)? && matches!(reader.read()?, Operator::End);
        Ok(self.table.get(&value.cast_unsigned()).copied().filter(|_| same))
    }

    fn write(&self, module: &mut Module) -> Result<()> {
        module.section(&self.type_section()?);
        let mut imports = ImportSection::new();
        for (from, name, of) in &self.imports {
            imports.import(from, name, EntityType::Function(*of));
        }
        module.section(&imports);
        module.section(&self.function_section()?);
        module.section(&self.table_section()?);
        module.section(&self.memory_section()?);
        module.section(&self.global_section()?);
        module.section(&self.export_section()?);
        if let Some(function_index) = self.start()? {
            module.section(&StartSection { function_index });
        }
        module.section(&self.element_section()?);
        module.section(&self.code_section()?);
        module.section(&self.data_section()?);
        Ok(())
    }

    fn type_section(&self) -> Result<TypeSection> {
        let mut section = TypeSection::new();
        for of in &self.types.all {
            section.ty().func_type(&RoundtripReencoder.func_type(of.clone())?);
        }
        Ok(section)
    }

    fn function_section(&self) -> Result<FunctionSection> {
        let mut section = FunctionSection::new();
        for (_, core) in &self.libraries {
            for of in &core.functions {
                section.function(self.types.places[type_of(core, *of)?]);
            }
        }
        Ok(section)
    }

    fn table_section(&self) -> Result<TableSection> {
        let tables: Vec<_> = self.libraries.iter().flat_map(|(_, core)| &core.tables).collect();
        let [table] = tables[..] else {
            return Err(MergeError::new(format_args!("it has {} tables and not one", tables.len())));
        };
        let mut section = TableSection::new();
        section.table(RoundtripReencoder.table_type(*table)?);
        Ok(section)
    }

    fn memory_section(&self) -> Result<MemorySection> {
        let memories: Vec<_> = self.libraries.iter().flat_map(|(_, core)| &core.memories).collect();
        let [memory] = memories[..] else {
            return Err(MergeError::new(format_args!("it has {} memories and not one", memories.len())));
        };
        let mut section = MemorySection::new();
        section.memory(RoundtripReencoder.memory_type(*memory)?);
        Ok(section)
    }

    fn global_section(&self) -> Result<GlobalSection> {
        let mut section = GlobalSection::new();
        for (instance, core) in &self.libraries {
            for (at, global) in core.globals.iter().enumerate() {
                let index = core.imports.count(IndexKind::Global) + count(at);
                let of = RoundtripReencoder.global_type(global.ty)?;
                let of = GlobalType { mutable: self.set.contains(&(*instance, index)), ..of };
                let value = if global.ty.content_type == wasmparser::ValType::I32 {
                    ConstExpr::i32_const(self.place(*instance, &global.init_expr)?.cast_signed())
                } else {
                    RoundtripReencoder.const_expr(global.init_expr.clone())?
                };
                section.global(of, &value);
            }
        }
        Ok(section)
    }

    fn export_section(&self) -> Result<ExportSection> {
        let mut section = ExportSection::new();
        section.export("memory", ExportKind::Memory, 0);
        for (name, provider) in self.linked.exported()? {
            section.export(name, ExportKind::Func, self.function(provider)?);
        }
        Ok(section)
    }

    /// The start function. A started image has none. With several, all would see the state that only the last one sees
    /// now.
    fn start(&self) -> Result<Option<u32>> {
        let starts = self.libraries.iter().filter_map(|(instance, core)| Some((*instance, core.start?)));
        let starts: Vec<_> = starts.collect();
        match starts[..] {
            [] => Ok(None),
            [(instance, index)] => {
                Ok(Some(self.function(self.linked.provider(instance, IndexKind::Function, index)?)?))
            }
            _ => Err(MergeError::new("several libraries have a start function")),
        }
    }

    /// The final table: a place that was written twice has the later entry.
    fn element_section(&self) -> Result<ElementSection> {
        let mut places: Vec<u32> = self.table.keys().copied().collect();
        places.sort_unstable();
        let mut section = ElementSection::new();
        for run in places.chunk_by(|one, next| one + 1 == *next) {
            let functions: Result<Vec<u32>> = run.iter().map(|place| self.function(self.table[place])).collect();
            let offset = ConstExpr::i32_const(run[0].cast_signed());
            section.active(None, &offset, Elements::Functions(functions?.into()));
        }
        Ok(section)
    }

    fn code_section(&self) -> Result<CodeSection> {
        let mut section = CodeSection::new();
        for (instance, core) in &self.libraries {
            let mut mover = self.mover(*instance, core)?;
            for body in &core.bodies {
                mover.parse_function_body(&mut section, body.clone()).map_err(|error| match error {
                    ReencodeError::UserError(why) => why,
                    other => MergeError::new(other),
                })?;
            }
        }
        Ok(section)
    }

    fn mover(&self, instance: usize, core: &'l Core<'a>) -> Result<Mover<'_, 'l, 'a>> {
        let all = |sort: IndexKind, own: usize| 0..core.imports.count(sort) + count(own);
        let provider = |sort: IndexKind, index| self.linked.provider(instance, sort, index);
        let functions = all(IndexKind::Function, core.functions.len())
            .map(|index| self.function(provider(IndexKind::Function, index)?));
        let globals = all(IndexKind::Global, core.globals.len())
            .map(|index| Ok(self.globals[&own(provider(IndexKind::Global, index)?)?]));
        Ok(Mover {
            types: &self.types,
            core,
            functions: functions.collect::<Result<_>>()?,
            globals: globals.collect::<Result<_>>()?,
        })
    }

    fn data_section(&self) -> Result<DataSection> {
        let mut section = DataSection::new();
        for (instance, core) in &self.libraries {
            for data in &core.data {
                let DataKind::Active { offset_expr, .. } = &data.kind else {
                    return Err(MergeError::new("a library has passive data"));
                };
                let offset = self.place(*instance, offset_expr)?;
                section.active(0, &ConstExpr::i32_const(offset.cast_signed()), data.data.iter().copied());
            }
        }
        Ok(section)
    }
}

/// Rewrites the indices in the code of one library.
struct Mover<'p, 'l, 'a> {
    types: &'p Types,
    core: &'l Core<'a>,
    functions: Vec<u32>,
    globals: Vec<u32>,
}

type Moved = std::result::Result<u32, ReencodeError<MergeError>>;

impl Reencode for Mover<'_, '_, '_> {
    type Error = MergeError;

    fn type_index(&mut self, index: u32) -> Moved {
        let of = type_of(self.core, index).map_err(ReencodeError::UserError)?;
        Ok(self.types.places[of])
    }

    fn function_index(&mut self, index: u32) -> Moved {
        moved(&self.functions, index)
    }

    fn global_index(&mut self, index: u32) -> Moved {
        moved(&self.globals, index)
    }

    fn table_index(&mut self, _: u32) -> Moved {
        Ok(0)
    }

    fn memory_index(&mut self, _: u32) -> Moved {
        Ok(0)
    }

    fn data_index(&mut self, _: u32) -> Moved {
        Err(ReencodeError::UserError(MergeError::new("a library copies data of its module")))
    }

    fn element_index(&mut self, _: u32) -> Moved {
        Err(ReencodeError::UserError(MergeError::new("a library copies references of its module")))
    }
}

fn moved(to: &[u32], index: u32) -> Moved {
    let missing = || ReencodeError::UserError(MergeError::new("its code names an item that it does not have"));
    to.get(index as usize).copied().ok_or_else(missing)
}

fn unknown_place(operator: &Operator) -> MergeError {
    MergeError::new(format_args!("a place is computed in a way that is not known: {operator:?}"))
}

fn functions_of(element: &wasmparser::Element) -> Result<Vec<u32>> {
    match &element.items {
        ElementItems::Functions(functions) => Ok(functions.clone().into_iter().collect::<wasmparser::Result<_>>()?),
        ElementItems::Expressions(_, expressions) => {
            expressions.clone().into_iter().map(|expression| referred(&expression?)).collect()
        }
    }
}

fn referred(expression: &wasmparser::ConstExpr) -> Result<u32> {
    match expression.get_operators_reader().read()? {
        Operator::RefFunc { function_index } => Ok(function_index),
        other => Err(MergeError::new(format_args!("a table is filled with something else than functions: {other:?}"))),
    }
}

fn type_of<'c>(core: &'c Core, index: u32) -> Result<&'c FuncType> {
    core.types.get(index as usize).ok_or_else(|| MergeError::new("it has no such type"))
}

fn own(provider: Provider) -> Result<Own> {
    match provider {
        Provider::Own { instance, index } => Ok((instance, index)),
        Provider::Host { name, .. } => Err(MergeError::new(format_args!("`{name}` is none of a library"))),
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("a module of 32 bits has fewer items")
}
