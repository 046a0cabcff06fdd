//! Similar words, and common names of Python programs.

/// Longest word that is compared, in characters.
const WORD_CHARS_MAX: usize = 64;

/// Most similar words for one word.
const CLOSEST_MAX: usize = 3;

/// The words nearest to `word`, at most three, the nearest first.
///
/// A word of up to four letters may have one wrong letter, one of up to eight two, a longer one three.
pub(crate) fn closest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    let allowed = match word.chars().count() {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let near = |other: &'w str| distance(word, other).filter(|far| *far <= allowed && other != word);
    let mut found: Vec<(usize, &str)> = words.filter_map(|other| near(other).map(|far| (far, other))).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(CLOSEST_MAX).map(|(_, other)| other).collect()
}

/// The number of letters that are wrong, missing, extra or swapped with the next; `userName` and `user_name` are 1
/// apart.
fn distance(one: &str, other: &str) -> Option<usize> {
    let plain =
        |text: &str| text.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect::<String>();
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if a.len() > WORD_CHARS_MAX || b.len() > WORD_CHARS_MAX {
        return None;
    }
    if one != other && plain(one) == plain(other) && !plain(one).is_empty() {
        return Some(1);
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, against) in b.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(letter != against)).min(row[j] + 1).min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && a[i - 1] == *against && *letter == b[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    Some(rows[a.len()][b.len()])
}

/// Modules of the standard library that programs import by name.
pub(crate) const MODULES: &[&str] = &[
    "abc",
    "argparse",
    "array",
    "ast",
    "asyncio",
    "base64",
    "bisect",
    "calendar",
    "cmath",
    "codecs",
    "collections",
    "concurrent",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "ctypes",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "email",
    "enum",
    "errno",
    "fnmatch",
    "fractions",
    "functools",
    "gc",
    "getpass",
    "glob",
    "graphlib",
    "gzip",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "http",
    "importlib",
    "inspect",
    "io",
    "ipaddress",
    "itertools",
    "json",
    "keyword",
    "linecache",
    "locale",
    "logging",
    "math",
    "mimetypes",
    "numbers",
    "operator",
    "os",
    "pathlib",
    "pickle",
    "platform",
    "pprint",
    "queue",
    "random",
    "re",
    "reprlib",
    "sched",
    "secrets",
    "select",
    "shelve",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "statistics",
    "string",
    "struct",
    "subprocess",
    "sys",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "timeit",
    "tokenize",
    "tomllib",
    "traceback",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
    "xml",
    "zipfile",
    "zlib",
    "zoneinfo",
];

/// Names that conventionally stand for a module.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("dt", "import datetime as dt"),
    ("np", "import numpy as np"),
    ("pd", "import pandas as pd"),
    ("plt", "import matplotlib.pyplot as plt"),
    ("sns", "import seaborn as sns"),
    ("tf", "import tensorflow as tf"),
];

/// Members that programs use without their module's name, with the module.
pub(crate) const MEMBERS: &[(&str, &str)] = &[
    ("ABC", "abc"),
    ("Any", "typing"),
    ("Callable", "collections.abc"),
    ("ChainMap", "collections"),
    ("Counter", "collections"),
    ("Decimal", "decimal"),
    ("Enum", "enum"),
    ("Fraction", "fractions"),
    ("Iterable", "collections.abc"),
    ("Iterator", "collections.abc"),
    ("NamedTuple", "typing"),
    ("Optional", "typing"),
    ("OrderedDict", "collections"),
    ("Path", "pathlib"),
    ("Protocol", "typing"),
    ("StringIO", "io"),
    ("BytesIO", "io"),
    ("Thread", "threading"),
    ("Union", "typing"),
    ("abstractmethod", "abc"),
    ("accumulate", "itertools"),
    ("asdict", "dataclasses"),
    ("bisect_left", "bisect"),
    ("bisect_right", "bisect"),
    ("cache", "functools"),
    ("ceil", "math"),
    ("chain", "itertools"),
    ("choice", "random"),
    ("combinations", "itertools"),
    ("contextmanager", "contextlib"),
    ("copy", "copy"),
    ("cos", "math"),
    ("count", "itertools"),
    ("dataclass", "dataclasses"),
    ("date", "datetime"),
    ("datetime", "datetime"),
    ("deepcopy", "copy"),
    ("defaultdict", "collections"),
    ("deque", "collections"),
    ("dumps", "json"),
    ("exp", "math"),
    ("factorial", "math"),
    ("field", "dataclasses"),
    ("floor", "math"),
    ("gcd", "math"),
    ("groupby", "itertools"),
    ("heappop", "heapq"),
    ("heappush", "heapq"),
    ("heapify", "heapq"),
    ("islice", "itertools"),
    ("itemgetter", "operator"),
    ("loads", "json"),
    ("log", "math"),
    ("log10", "math"),
    ("lru_cache", "functools"),
    ("mean", "statistics"),
    ("median", "statistics"),
    ("namedtuple", "collections"),
    ("partial", "functools"),
    ("permutations", "itertools"),
    ("pi", "math"),
    ("pprint", "pprint"),
    ("product", "itertools"),
    ("randint", "random"),
    ("reduce", "functools"),
    ("sample", "random"),
    ("shuffle", "random"),
    ("sin", "math"),
    ("sleep", "time"),
    ("sqrt", "math"),
    ("stdev", "statistics"),
    ("suppress", "contextlib"),
    ("tan", "math"),
    ("timedelta", "datetime"),
    ("timezone", "datetime"),
    ("uuid4", "uuid"),
    ("wraps", "functools"),
    ("zip_longest", "itertools"),
];

/// Methods of the common types, by type.
pub(crate) const METHODS: &[(&str, &[&str])] = &[
    (
        "str",
        &[
            "capitalize",
            "casefold",
            "center",
            "count",
            "encode",
            "endswith",
            "expandtabs",
            "find",
            "format",
            "index",
            "isalnum",
            "isalpha",
            "isdigit",
            "isidentifier",
            "islower",
            "isnumeric",
            "isspace",
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
            "strip",
            "swapcase",
            "title",
            "translate",
            "upper",
            "zfill",
        ],
    ),
    ("list", &["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"]),
    (
        "dict",
        &["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"],
    ),
    (
        "set",
        &[
            "add",
            "clear",
            "copy",
            "difference",
            "discard",
            "intersection",
            "isdisjoint",
            "issubset",
            "issuperset",
            "pop",
            "remove",
            "symmetric_difference",
            "union",
            "update",
        ],
    ),
    ("tuple", &["count", "index"]),
    ("bytes", &["decode", "endswith", "find", "hex", "join", "replace", "split", "startswith", "strip"]),
    ("int", &["bit_length", "from_bytes", "to_bytes"]),
    ("float", &["hex", "is_integer"]),
];

/// Names of methods in other languages and types: type, foreign name, Python's name.
pub(crate) const CALLED_OTHERWISE: &[(&str, &str, &str)] = &[
    ("dict", "add", "update"),
    ("dict", "iteritems", "items"),
    ("dict", "iterkeys", "keys"),
    ("dict", "itervalues", "values"),
    ("list", "add", "append"),
    ("list", "push", "append"),
    ("list", "push_back", "append"),
    ("list", "addAll", "extend"),
    ("list", "concat", "extend"),
    ("list", "indexOf", "index"),
    ("list", "delete", "remove"),
    ("set", "append", "add"),
    ("set", "push", "add"),
    ("set", "extend", "update"),
    ("set", "delete", "discard"),
    ("str", "trim", "strip"),
    ("str", "toUpperCase", "upper"),
    ("str", "toLowerCase", "lower"),
    ("str", "to_upper", "upper"),
    ("str", "to_lower", "lower"),
    ("str", "startsWith", "startswith"),
    ("str", "endsWith", "endswith"),
    ("str", "indexOf", "find"),
    ("str", "replaceAll", "replace"),
    ("str", "chomp", "rstrip"),
];

#[cfg(test)]
mod tests {
    use super::{closest, distance};

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(distance("totl", "total"), Some(1));
        assert_eq!(distance("pirce", "price"), Some(1));
        assert_eq!(distance("userName", "user_name"), Some(1));
        assert_eq!(closest("pritn", ["point", "print", "x"].into_iter()), ["print", "point"].as_slice());
        assert!(closest("x", ["y"].into_iter()).is_empty());
        assert!(closest("a", ["a"].into_iter()).is_empty());
    }
}
