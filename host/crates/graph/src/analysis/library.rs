//! Functions of Python's library, and methods of its types, that change no value that they are given.
//!
//! The lists name only what is certain for the types of the language and the library. As everywhere in the analysis,
//! code of a value's own that they call (`__eq__`, `__iter__`, a `key`) is assumed to change nothing, and an iterator
//! that they run to its end is observed when the step runs. What is missing here only keeps a dependency.

use super::proof::ValueKind;

/// Modules all of whose functions leave their arguments as they are and give something new. Sorted.
const MODULES: &[&str] = &[
    "cmath",
    "difflib",
    "fnmatch",
    "html",
    "keyword",
    "math",
    "os.path",
    "posixpath",
    "re",
    "statistics",
    "string",
    "textwrap",
    "time",
    "unicodedata",
    "urllib.parse",
    "zlib",
];

/// Modules with state that goes from step to step, or that give away the steps' own namespace. Sorted.
const STATEFUL: &[&str] = &["__main__", "builtins", "decimal", "gc", "inspect", "random"];

/// Functions and classes that leave their arguments as they are and give something new. Sorted.
const FRESH: &[&str] = &[
    "base64.b64decode",
    "base64.b64encode",
    "base64.urlsafe_b64decode",
    "base64.urlsafe_b64encode",
    "binascii.crc32",
    "binascii.hexlify",
    "binascii.unhexlify",
    "bisect.bisect",
    "bisect.bisect_left",
    "bisect.bisect_right",
    "calendar.isleap",
    "calendar.monthrange",
    "copy.deepcopy",
    "datetime.date",
    "datetime.date.fromisoformat",
    "datetime.date.today",
    "datetime.datetime",
    "datetime.datetime.combine",
    "datetime.datetime.fromisoformat",
    "datetime.datetime.fromtimestamp",
    "datetime.datetime.now",
    "datetime.datetime.strptime",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "datetime.time",
    "datetime.timedelta",
    "datetime.timezone",
    "decimal.Decimal",
    "fractions.Fraction",
    "glob.glob",
    "hashlib.md5",
    "hashlib.new",
    "hashlib.sha1",
    "hashlib.sha256",
    "hashlib.sha512",
    "json.dumps",
    "json.loads",
    "operator.add",
    "operator.itemgetter",
    "operator.mul",
    "os.getcwd",
    "os.getenv",
    "os.listdir",
    "os.makedirs",
    "os.remove",
    "os.stat",
    "pathlib.Path",
    "pathlib.PurePath",
    "pprint.pformat",
    "pprint.pprint",
    "random.gauss",
    "random.randint",
    "random.randrange",
    "random.uniform",
    "struct.calcsize",
    "struct.pack",
    "struct.unpack",
    "sys.getsizeof",
    "uuid.UUID",
    "uuid.uuid4",
];

/// Functions and classes that leave their arguments as they are; the result may share their parts. Sorted.
const ALIASING: &[&str] = &[
    "collections.ChainMap",
    "collections.Counter",
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.deque",
    "collections.namedtuple",
    "copy.copy",
    "csv.DictReader",
    "csv.reader",
    "dataclasses.asdict",
    "dataclasses.replace",
    "functools.partial",
    "heapq.merge",
    "heapq.nlargest",
    "heapq.nsmallest",
    "itertools.chain",
    "itertools.chain.from_iterable",
    "itertools.combinations",
    "itertools.pairwise",
    "itertools.permutations",
    "itertools.product",
    "itertools.zip_longest",
    "random.choice",
    "random.choices",
    "random.sample",
    "types.MappingProxyType",
    "types.SimpleNamespace",
];

/// Methods that leave their value and their arguments as they are, and give something new. Sorted.
const NEW_VALUES: &[&str] = &[
    "bit_length",
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "findall",
    "format",
    "format_map",
    "fullmatch",
    "group",
    "groupdict",
    "groups",
    "hexdigest",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isdisjoint",
    "isidentifier",
    "islower",
    "isnumeric",
    "isoformat",
    "isspace",
    "issubset",
    "issuperset",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strftime",
    "strip",
    "swapcase",
    "timestamp",
    "title",
    "total_seconds",
    "upper",
    "weekday",
    "zfill",
];

/// Methods that leave their value and their arguments as they are; the result may share their parts. Sorted.
const VIEWS: &[&str] = &[
    "copy",
    "difference",
    "elements",
    "get",
    "intersection",
    "items",
    "keys",
    "most_common",
    "symmetric_difference",
    "union",
    "values",
];

/// Methods that change their value and leave their arguments as they are. Sorted.
const STORING: &[&str] = &["add", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update"];

/// Methods of the language's containers that change their value and take no value in. Sorted.
const TAKING: &[&str] = &["clear", "discard", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "sort"];

/// Builtins that give a number, a text or a truth value. Sorted.
const SCALARS: &[&str] = &[
    "all",
    "any",
    "ascii",
    "bin",
    "bool",
    "callable",
    "chr",
    "complex",
    "float",
    "format",
    "hasattr",
    "hash",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "len",
    "oct",
    "ord",
    "repr",
    "str",
];

/// Builtins that give a new container, or a number. Sorted.
const CONTAINERS: &[&str] = &[
    "abs",
    "bytearray",
    "bytes",
    "dict",
    "divmod",
    "frozenset",
    "list",
    "open",
    "pow",
    "range",
    "round",
    "set",
    "sorted",
    "sum",
    "tuple",
];

/// True for a function or class of a module that leaves its arguments as they are.
pub(crate) fn leaves(name: &str) -> bool {
    is_fresh(name) || is_in(ALIASING, name)
}

/// True for one that also gives something new.
pub(crate) fn is_fresh(name: &str) -> bool {
    let of_module = |module: &&str| name.strip_prefix(*module).is_some_and(|rest| rest.starts_with('.'));
    is_in(FRESH, name) || MODULES.iter().any(of_module)
}

/// True for a kind of value that no step can change in place, or whose changes no later step sees.
pub(crate) fn is_inert(kind: &ValueKind) -> bool {
    match kind {
        ValueKind::Plain => true,
        ValueKind::Module(name) => !is_in(STATEFUL, name.split('.').next().unwrap_or_default()),
        ValueKind::Member(name) => leaves(name) || is_in(MODULES, name),
        ValueKind::Function(_) => false,
    }
}

/// True for a method that leaves its value and its arguments as they are.
pub(super) fn only_looks(method: &str) -> bool {
    gives_new(method) || is_in(VIEWS, method)
}

/// True for such a method whose result shares nothing with them.
pub(super) fn gives_new(method: &str) -> bool {
    is_in(NEW_VALUES, method)
}

/// True for a method that takes its arguments in as they are.
pub(super) fn stores(method: &str) -> bool {
    is_in(STORING, method)
}

/// True for a method that changes only the container that it is a method of.
pub(super) fn changes_container_alone(method: &str) -> bool {
    stores(method) || is_in(TAKING, method)
}

/// True for a builtin that gives a number, a text or a truth value.
pub(super) fn gives_scalar(builtin: &str) -> bool {
    is_in(SCALARS, builtin)
}

/// True for a builtin that gives a number, a text or a container of its own.
pub(super) fn gives_new_container(builtin: &str) -> bool {
    gives_scalar(builtin) || is_in(CONTAINERS, builtin)
}

fn is_in(table: &[&str], name: &str) -> bool {
    table.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::builtins::{is_builtin, leaves_arguments};
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_no_method_is_in_two() {
        let tables = [MODULES, STATEFUL, FRESH, ALIASING, NEW_VALUES, VIEWS, STORING, TAKING, SCALARS, CONTAINERS];
        for table in tables {
            assert!(table.is_sorted(), "{table:?}");
        }
        let methods = [NEW_VALUES, VIEWS, STORING, TAKING].concat();
        for method in &methods {
            assert_eq!(methods.iter().filter(|other| *other == method).count(), 1, "{method}");
        }
        assert!(SCALARS.iter().chain(CONTAINERS).all(|name| is_builtin(name) && leaves_arguments(name)));
        assert!(FRESH.iter().all(|name| !is_in(ALIASING, name)));
    }

    #[test]
    fn a_function_is_known_by_its_whole_name() {
        assert!(leaves("math.sqrt") && leaves("os.path.join") && leaves("json.dumps"));
        assert!(!leaves("mathematics.sqrt") && !leaves("math") && !leaves("json.dump") && !leaves("random.shuffle"));
        assert!(leaves("copy.copy") && !is_fresh("copy.copy"));
        assert!(is_inert(&ValueKind::Module("json".into())) && !is_inert(&ValueKind::Module("random".into())));
    }
}
