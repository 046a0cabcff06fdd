//! Bounds and defaults of the schemas are those of the files' readers. Whole files are compared where the command is.

use super::*;
use longhaul_core::fault;
use longhaul_harness::HarnessLimits;

/// The start of every project's file.
const SMALL: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

/// Bounded keys of `longhaul.toml`, each by its type and name, and a text in which `VALUE` is its value. It follows
/// [`SMALL`], but for that of the project.
const OF_PROJECT: [(&str, &str); 25] = [
    ("AskConfig.confidence_percent_min", "[ask.limits]\nconfidence_percent_min = VALUE"),
    ("CheckpointConfig.lease_ms", "[checkpoints]\nlease_ms = VALUE"),
    (
        "ContextRules.full_percent_max",
        "[context]\ncompact_percent_max = 0\nreset_percent_max = 0\nfull_percent_max = VALUE",
    ),
    ("EmailConfig.sendmail", "[notify.email]\nfrom = \"a@b.example\"\nto = [\"a@b.example\"]\nsendmail = VALUE"),
    ("EmailConfig.to", "[notify.email]\nfrom = \"a@b.example\"\nto = VALUE"),
    ("HarnessLimits.confidence_percent_min", "[run.limits]\nconfidence_percent_min = VALUE"),
    ("McpConfig.output_bytes_max", "[mcp.m]\ncommand = [\"x\"]\noutput_bytes_max = VALUE"),
    ("ModelConfig.nice", "[models.m]\nprovider = \"local\"\nnice = VALUE"),
    ("NativeCheck.anyOf", "[checks]\nc = VALUE"),
    ("NativeCheck.argv", "[checks]\nc = { argv = VALUE }"),
    ("NativeCheck.memory_bytes_max", "[checks]\nc = { argv = [\"x\"], memory_bytes_max = VALUE }"),
    ("NativeCheck.wall_ms_max", "[checks]\nc = { argv = [\"x\"], wall_ms_max = VALUE }"),
    ("NotifyConfig.attempts_max", "[notify]\ncommand = [\"x\"]\nattempts_max = VALUE"),
    ("NotifyConfig.per_hour_max", "[notify]\ncommand = [\"x\"]\nper_hour_max = VALUE"),
    ("PackageRequirement.", "[tools.t]\nplugin = \"python\"\npackages = [VALUE]"),
    (
        "ProjectConfig.cost_microdollars_per_day_max",
        "[project]\nname = \"p\"\ncost_microdollars_per_day_max = VALUE\n[agents.code]\nplugin = \"react\"",
    ),
    ("ProjectConfig.name", "[project]\nname = VALUE\n[agents.code]\nplugin = \"react\""),
    (
        "ProjectConfig.runs_at_once_max",
        "[project]\nname = \"p\"\nruns_at_once_max = VALUE\n[agents.code]\nplugin = \"react\"",
    ),
    (
        "ProjectConfig.tokens_per_day_max",
        "[project]\nname = \"p\"\ntokens_per_day_max = VALUE\n[agents.code]\nplugin = \"react\"",
    ),
    ("RedisConfig.prefix", "[checkpoints.redis]\nurl = \"redis://a.example:6379/0\"\nprefix = VALUE"),
    ("RedisConfig.ttl_s", "[checkpoints.redis]\nurl = \"redis://a.example:6379/0\"\nttl_s = VALUE"),
    ("RunConfig.items", "[run]\nlabels_needed = [VALUE]"),
    ("RunConfig.priority", "[run]\npriority = VALUE"),
    (
        "SecretConfig.name",
        "[tools.t]\nplugin = \"http-fetch\"\nsecrets = [{ name = VALUE, hosts = [\"https://a.example\"] }]",
    ),
    ("TelemetryConfig.sample_ratio", "[telemetry]\notlp_endpoint = \"http://127.0.0.1:4318\"\nsample_ratio = VALUE"),
];

/// The same of `server.toml`.
const OF_SERVER: [(&str, &str); 22] = [
    (
        "ContentConfig.bytes_min",
        "[store]\nurl = \"postgres://a@b.example/c\"\n[store.content]\nurl = \"file:///a\"\nbytes_min = VALUE",
    ),
    (
        "ContentConfig.grace_s",
        "[store]\nurl = \"postgres://a@b.example/c\"\n[store.content]\nurl = \"file:///a\"\ngrace_s = VALUE",
    ),
    ("EmailConfig.sendmail", "[notify.email]\nfrom = \"a@b.example\"\nto = [\"a@b.example\"]\nsendmail = VALUE"),
    ("EmailConfig.to", "[notify.email]\nfrom = \"a@b.example\"\nto = VALUE"),
    ("NotifyConfig.attempts_max", "[notify]\ncommand = [\"x\"]\nattempts_max = VALUE"),
    ("NotifyConfig.per_hour_max", "[notify]\ncommand = [\"x\"]\nper_hour_max = VALUE"),
    ("PostgresConfig.connect_ms_max", "[store]\nurl = \"postgres://a@b.example/c\"\nconnect_ms_max = VALUE"),
    ("PostgresConfig.connections_max", "[store]\nurl = \"postgres://a@b.example/c\"\nconnections_max = VALUE"),
    ("PostgresConfig.lease_ms", "[store]\nurl = \"postgres://a@b.example/c\"\nlease_ms = VALUE"),
    ("PostgresConfig.schema", "[store]\nurl = \"postgres://a@b.example/c\"\nschema = VALUE"),
    ("PostgresConfig.statement_ms_max", "[store]\nurl = \"postgres://a@b.example/c\"\nstatement_ms_max = VALUE"),
    (
        "SchedulerSettings.interruption_backoff_ms_first",
        "[scheduler]\ninterruption_backoff_ms_max = 86400000\ninterruption_backoff_ms_first = VALUE",
    ),
    (
        "SchedulerSettings.interruption_backoff_ms_max",
        "[scheduler]\ninterruption_backoff_ms_first = 1\ninterruption_backoff_ms_max = VALUE",
    ),
    ("SchedulerSettings.queue_max", "[scheduler]\nqueue_max = VALUE"),
    ("ServerSettings.body_bytes_max", "[server]\nbody_bytes_max = VALUE"),
    ("ServerSettings.connections_max", "[server]\nconnections_max = VALUE"),
    ("ServerSettings.exec_max", "[server]\nexec_max = VALUE"),
    ("ServerSettings.requests_burst", "[server]\nrequests_burst = VALUE"),
    ("ServerSettings.requests_per_second", "[server]\nrequests_per_second = VALUE"),
    ("ServerSettings.streams_max", "[server]\nstreams_max = VALUE"),
    ("WorkerSettings.items", "[store]\nurl = \"postgres://a@b.example/c\"\n[worker]\nlabels = [VALUE]"),
    ("WorkerSettings.runs_max", "[store]\nurl = \"postgres://a@b.example/c\"\n[worker]\nruns_max = VALUE"),
];

/// Keywords of bounds.
const BOUNDS: [&str; 6] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "pattern"];

/// The schemas with bounds below `schema`, each with its type and name. A minimum of 0 alone is that of all numbers
/// without a sign.
fn bounded(schema: &Value, kind: &str, name: &str, found: &mut Vec<(String, Value)>) {
    let Some(fields) = schema.as_object() else { return };
    let is_bound = |(keyword, bound): (&String, &Value)| {
        BOUNDS.contains(&keyword.as_str()) && (keyword != "minimum" || *bound != 0)
    };
    if fields.iter().any(is_bound) {
        found.push((format!("{kind}.{name}"), schema.clone()));
    }
    for (name, key) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        bounded(key, kind, name, found);
    }
    for (kind, definition) in fields.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        bounded(definition, kind, "", found);
    }
    for keyword in ["anyOf", "oneOf"] {
        for choice in fields.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            bounded(choice, kind, keyword, found);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get(keyword) {
            bounded(inner, kind, keyword, found);
        }
    }
}

/// Values at the edges of a schema as TOML, each with true where it is inside.
fn edges(schema: &Value) -> Vec<(String, bool)> {
    let number = |keyword: &str| schema[keyword].as_i64();
    let mut values = Vec::new();
    match schema["type"].as_str() {
        Some("integer" | "number") => {
            values.extend(number("minimum").into_iter().flat_map(|least| [(least, true), (least - 1, false)]));
            values.extend(number("maximum").into_iter().flat_map(|most| [(most, true), (most + 1, false)]));
            return values.into_iter().map(|(value, is_inside)| (value.to_string(), is_inside)).collect();
        }
        Some("array") => return vec![("[\"a@b.example\"]".to_owned(), true), ("[]".to_owned(), false)],
        Some("string") => {}
        other => panic!("{other:?} has bounds"),
    }
    let text = |length: i64| format!("\"{}\"", "a".repeat(usize::try_from(length).expect("a length")));
    let mut texts = vec![(text(number("minLength").expect("texts with bounds have one")), true), (text(0), false)];
    if let Some(most) = number("maxLength") {
        texts.extend([(text(most), true), (text(most + 1), false)]);
    }
    if schema["pattern"].is_string() {
        texts.push(("\"a b\"".to_owned(), false));
    }
    texts
}

#[track_caller]
fn check(schema: &Value, texts: &[(&str, &str)], takes: impl Fn(&str) -> fault::Result<()>) {
    let mut found = Vec::new();
    bounded(schema, "", "", &mut found);
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, texts.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, bounds) in &found {
        let (_, text) = texts.iter().find(|(known, _)| known == name).expect("the names are equal");
        for (value, is_inside) in edges(bounds) {
            let text = text.replace("VALUE", &value);
            let taken = takes(&text);
            assert_eq!(taken.is_ok(), is_inside, "{text}\n{taken:?}");
        }
    }
}

#[test]
fn the_bounds_of_a_schema_are_those_of_the_reader() {
    check(&of_project(), &OF_PROJECT, |text| {
        let start = if text.starts_with("[project]") { "" } else { SMALL };
        Config::parse(&format!("{start}{text}\n")).map(drop)
    });
    check(&of_server(), &OF_SERVER, |text| Written::parse(text).map(drop));
    check(&of_resources(), &[(".runs_max", "runs_max = VALUE")], |text| ResourceSettings::parse(text).map(drop));
}

#[test]
fn a_key_has_the_default_of_its_table() {
    let schema = of_project();
    let default = |path: &str| schema.pointer(path).unwrap_or(&Value::Null)["default"].clone();
    let caps = HarnessLimits::default();
    assert_eq!(default("/$defs/HarnessLimits/properties/iterations_max"), caps.iterations_max);
    let own = "/$defs/AskConfig/properties/limits/properties";
    assert_eq!(default(&format!("{own}/iterations_max")), HarnessLimits::of_ask().iterations_max);
    assert_ne!(caps.iterations_max, HarnessLimits::of_ask().iterations_max);
    assert_eq!(default("/$defs/ProjectConfig/properties/goal"), "GOAL.md");
    assert_eq!(default("/$defs/NativeCheck/anyOf/0/properties/twins"), true);
    // None, and a table, which has defaults for its keys.
    assert_eq!(default("/$defs/HarnessLimits/properties/tokens_max"), Value::Null);
    assert_eq!(default("/properties/run"), Value::Null);
    assert_eq!(of_server().pointer("/$defs/ServerSettings/properties/listen/default"), Some(&"127.0.0.1:7717".into()));
}

#[test]
fn a_schema_has_no_null_and_no_keyword_that_editors_do_not_know() {
    for schema in [of_project(), of_server(), of_resources()] {
        let text = schema.to_string();
        for word in ["\"null\"", "null,", "unevaluatedProperties", "\"format\"", "[`", "`]"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["additionalProperties"], false);
        assert!(text.starts_with("{\"$schema\":"), "{text}");
    }
}

#[test]
fn a_description_is_prose() {
    let documentation = "One model;\nof many.\n\nIt is [`Kept`]; see [`crate::kept`].\n\n```toml\n[models.a]\n```";
    assert_eq!(description(documentation), "One model; of many.\n\nIt is `Kept`.");
}
