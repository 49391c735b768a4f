//! Two changes to the component that componentize-py made.
//!
//! 1. [`pin`]: every object that the interpreter has when it is kept becomes immortal, as CPython's own constants are. A run
//!    then reads those objects without counting references in them, and dirties far fewer pages. The guest's Python lists its
//!    objects (`wcpod_guest/census.py`), the component holds its memory as data segments at fixed addresses, so this sets one
//!    word of each.
//! 2. [`count_stack`]: `_Py_Dealloc` takes some of the stack that CPython measures. WebAssembly calls leave that stack alone,
//!    so CPython does not notice how deep it is in freeing a chain of a million objects, and its own remedy (to put the rest
//!    off) never begins.
use std::error::Error;
use std::ops::Range;

use wasm_encoder::{CodeSection, Function, FunctionSection, RawSection};
use wasmparser::{
    BinaryReader, CodeSectionReader, DataKind, ExternalKind, FunctionSectionReader, Operator, Parser, Payload, TypeRef,
};

/// Whatever stands in the way.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What CPython gives its immortal objects on 32-bit machines (`_Py_IMMORTAL_INITIAL_REFCNT`).
const IMMORTAL: u32 = 5 << 28;
/// More references than a live object can have here. What was freed has an address or 0 in this place.
const COUNTED: u32 = 1 << 20;

/// The function that frees an object.
const FREES: &str = "_Py_Dealloc";
/// Bytes of stack that one nested call of it is to count for.
const FRAME: i32 = 64;

/// A piece of the initial memory.
struct Segment {
    address: u32,
    /// Where its bytes lie in the component.
    place: Range<usize>,
}

/// Makes the listed objects immortal, and says how many they are.
///
/// `objects` has two little-endian words for each: its address and that of its type. An object that was freed after it was
/// listed has lost its reference count, and is left alone.
///
/// # Errors
/// When the component is malformed, or has its memory elsewhere than at fixed addresses.
pub fn pin(component: &mut [u8], objects: &[u8]) -> Result<usize> {
    let mut segments = segments(component)?;
    segments.sort_by_key(|segment| segment.address);
    let mut pinned = 0;
    for object in objects.as_chunks::<8>().0 {
        let [address, kind] = words(object);
        let after = segments.partition_point(|segment| segment.address <= address);
        let Some(segment) = after.checked_sub(1).map(|index| &segments[index]) else { continue };
        let begin = segment.place.start + (address - segment.address) as usize;
        let Some(head) = component[..segment.place.end].get_mut(begin..).and_then(<[u8]>::first_chunk_mut::<8>) else {
            continue;
        };
        let [count, found] = words(head);
        if found == kind && (1..COUNTED).contains(&count) {
            head[..4].copy_from_slice(&IMMORTAL.to_le_bytes());
            pinned += 1;
        }
    }
    Ok(pinned)
}

/// Two little-endian words.
fn words(bytes: &[u8; 8]) -> [u32; 2] {
    let both = u64::from_le_bytes(*bytes);
    [both as u32, (both >> 32) as u32]
}

/// The pieces of the initial memory of all modules.
fn segments(component: &[u8]) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let Payload::DataSection(section) = payload? else { continue };
        for data in section {
            let data = data?;
            let DataKind::Active { memory_index: 0, offset_expr } = data.kind else {
                return Err("a data segment that is not at a fixed address".into());
            };
            let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? else {
                return Err("a data segment that is not at a fixed address".into());
            };
            let place = data.range.end - data.data.len()..data.range.end;
            segments.push(Segment { address: value as u32, place });
        }
    }
    Ok(segments)
}

/// Wraps `_Py_Dealloc` into a function that moves the stack pointer.
///
/// # Errors
/// When the component is malformed, or not exactly one of its modules defines the function.
pub fn count_stack(component: &[u8]) -> Result<Vec<u8>> {
    let mut result = wasm_encoder::Component::new();
    let (mut depth, mut wrapped) = (0, 0);
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        if depth == 0
            && let Some((id, range)) = payload.as_section()
        {
            let mut content = component[range].to_vec();
            if matches!(payload, Payload::ModuleSection { .. })
                && let Some(changed) = with_wrapper(&content)?
            {
                content = changed;
                wrapped += 1;
            }
            result.section(&RawSection { id, data: &content });
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    if wrapped != 1 {
        return Err(format!("the component has {wrapped} modules that define {FREES}, not one").into());
    }
    Ok(result.finish())
}

/// What a module says of the function that frees.
#[derive(Default)]
struct Found {
    imported_functions: u32,
    globals: u32,
    stack_pointer: Option<u32>,
    frees: Option<u32>,
    types: Vec<u32>,
    bodies: u32,
}

impl Found {
    fn read(module: &[u8]) -> Result<Self> {
        let mut found = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        match import.ty {
                            TypeRef::Func(_) => found.imported_functions += 1,
                            TypeRef::Global(_) => {
                                if (import.module, import.name) == ("env", "__stack_pointer") {
                                    found.stack_pointer = Some(found.globals);
                                }
                                found.globals += 1;
                            }
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    found.types = section.into_iter().collect::<std::result::Result<_, _>>()?
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.name == FREES && export.kind == ExternalKind::Func {
                            found.frees = Some(export.index);
                        }
                    }
                }
                Payload::CodeSectionStart { count, .. } => found.bodies = count,
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The module with the wrapper, if it defines the function and measures a stack.
fn with_wrapper(module: &[u8]) -> Result<Option<Vec<u8>>> {
    let found = Found::read(module)?;
    let (Some(function), Some(stack_pointer)) = (found.frees, found.stack_pointer) else { return Ok(None) };
    let Some(index) = function.checked_sub(found.imported_functions) else { return Ok(None) };
    let wrapper = wrapper(stack_pointer, found.imported_functions + found.bodies);
    let mut result = wasm_encoder::Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        let content = &module[range];
        match payload {
            Payload::FunctionSection(section) => result.section(&with_type_of(section, index)?),
            Payload::CodeSectionStart { .. } => {
                let section = CodeSectionReader::new(BinaryReader::new(content, 0))?;
                result.section(&with_body(section, index, &wrapper)?)
            }
            _ => result.section(&RawSection { id, data: content }),
        };
    }
    Ok(Some(result.finish()))
}

/// A function that calls `wrapped` with its argument, on a stack that is a frame shorter.
fn wrapper(stack_pointer: u32, wrapped: u32) -> Function {
    let mut wrapper = Function::new([]);
    let mut code = wrapper.instructions();
    code.global_get(stack_pointer).i32_const(FRAME).i32_sub().global_set(stack_pointer);
    code.local_get(0).call(wrapped);
    code.global_get(stack_pointer).i32_const(FRAME).i32_add().global_set(stack_pointer).end();
    wrapper
}

/// The types of all functions, and once more that of one.
fn with_type_of(section: FunctionSectionReader, index: u32) -> Result<FunctionSection> {
    let mut types = section.into_iter().collect::<std::result::Result<Vec<u32>, _>>()?;
    types.push(*types.get(index as usize).ok_or("a function without a type")?);
    let mut result = FunctionSection::new();
    for kind in types {
        result.function(kind);
    }
    Ok(result)
}

/// The bodies of all functions; `wrapper` takes the place of one, which comes last.
fn with_body(section: CodeSectionReader, index: u32, wrapper: &Function) -> Result<CodeSection> {
    let mut result = CodeSection::new();
    let mut last = None;
    for (at, body) in (0..).zip(section) {
        let body = body?;
        if at == index {
            result.function(wrapper);
            last = Some(body);
        } else {
            result.raw(body.as_bytes());
        }
    }
    result.raw(last.ok_or("a function without a body")?.as_bytes());
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use wasm_encoder::{
        ConstExpr, DataSection, EntityType, ExportKind, ExportSection, GlobalSection, GlobalType, ImportSection,
        MemorySection, MemoryType, Module, ModuleSection, TypeSection, ValType,
    };
    use wasmtime::{Engine, Global, Instance, Mutability, Store, Val};

    use super::*;

    const POINTER: GlobalType = GlobalType { val_type: ValType::I32, mutable: true, shared: false };

    fn component(modules: &[Module]) -> Vec<u8> {
        let mut component = wasm_encoder::Component::new();
        for module in modules {
            component.section(&ModuleSection(module));
        }
        component.finish()
    }

    fn memory(segments: &[(i32, &[u8])]) -> Module {
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut data = DataSection::new();
        for (address, bytes) in segments {
            data.active(0, &ConstExpr::i32_const(*address), bytes.iter().copied());
        }
        let mut module = Module::new();
        module.section(&memories).section(&data);
        module
    }

    /// A module whose `_Py_Dealloc` keeps its argument and the stack pointer that it sees in two exported globals.
    fn frees() -> Module {
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32], []);
        let mut imports = ImportSection::new();
        imports.import("env", "__stack_pointer", EntityType::Global(POINTER));
        let mut functions = FunctionSection::new();
        functions.function(0).function(0);
        let mut globals = GlobalSection::new();
        globals.global(POINTER, &ConstExpr::i32_const(0)).global(POINTER, &ConstExpr::i32_const(0));
        let mut exports = ExportSection::new();
        exports.export(FREES, ExportKind::Func, 1);
        exports.export("argument", ExportKind::Global, 1).export("seen", ExportKind::Global, 2);
        let mut code = CodeSection::new();
        let mut other = Function::new([]);
        other.instructions().end();
        let mut body = Function::new([]);
        body.instructions().local_get(0).global_set(1).global_get(0).global_set(2).end();
        code.function(&other).function(&body);
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&globals).section(&exports).section(&code);
        module
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_is_still_an_object_is_pinned() {
        let objects = bytes(&[3, 0x500, 0, 0x500, 0x12_0000, 0x500, 2, 0x600, 1 << 19, 0x500]);
        let mut whole = component(&[memory(&[(0x2000, &objects), (0x100, b"other")])]);
        let before = whole.clone();
        let listed = [0x2000, 0x2008, 0x2010, 0x2018, 0x2020, 0x2024, 0x9000, 0x50, 0x104];
        let listed: Vec<u32> = listed.into_iter().flat_map(|address| [address, 0x500]).collect();
        assert_eq!(pin(&mut whole, &bytes(&listed)).unwrap(), 2);
        let at = before.windows(objects.len()).position(|window| window == objects).unwrap();
        let after = bytes(&[IMMORTAL, 0x500, 0, 0x500, 0x12_0000, 0x500, 2, 0x600, IMMORTAL, 0x500]);
        assert_eq!(whole[at..at + after.len()], after);
        let changed = iter::zip(&before, &whole).filter(|(before, after)| before != after).count();
        assert!(changed <= 8, "{changed} bytes changed");
    }

    #[test]
    fn the_function_that_frees_counts_on_the_stack() {
        let changed = count_stack(&component(&[Module::new(), frees()])).unwrap();
        let mut modules = Vec::new();
        for payload in Parser::new(0).parse_all(&changed) {
            if let Payload::ModuleSection { unchecked_range, .. } = payload.unwrap() {
                modules.push(&changed[unchecked_range]);
            }
        }
        assert_eq!(modules[0], Module::new().finish());
        let engine = Engine::default();
        let mut store = Store::new(&engine, ());
        let kind = wasmtime::GlobalType::new(wasmtime::ValType::I32, Mutability::Var);
        let pointer = Global::new(&mut store, kind, Val::I32(1000)).unwrap();
        let module = wasmtime::Module::new(&engine, modules[1]).unwrap();
        let instance = Instance::new(&mut store, &module, &[pointer.into()]).unwrap();
        let frees = instance.get_typed_func::<i32, ()>(&mut store, FREES).unwrap();
        frees.call(&mut store, 7).unwrap();
        let mut global = |name| instance.get_global(&mut store, name).unwrap().get(&mut store).i32();
        assert_eq!((global("argument"), global("seen")), (Some(7), Some(1000 - FRAME)));
        assert_eq!(pointer.get(&mut store).i32(), Some(1000));
    }

    #[test]
    fn a_component_that_frees_nothing_or_twice_is_refused() {
        let refused = |modules: &[Module]| count_stack(&component(modules)).unwrap_err().to_string();
        assert_eq!(refused(&[Module::new()]), "the component has 0 modules that define _Py_Dealloc, not one");
        assert_eq!(refused(&[frees(), frees()]), "the component has 2 modules that define _Py_Dealloc, not one");
    }

    #[test]
    fn what_is_no_component_is_an_error() {
        assert!(pin(&mut b"\0asm".to_vec(), &[]).is_err());
        assert!(count_stack(b"not a component").is_err());
    }
}
