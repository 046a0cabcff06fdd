//! Schemas of shipped plugins and of others, converted to each provider's rules, and replies converted back.

use super::*;
use serde_json::json;

/// The schema of a step of `react`, in its style `actions`: an open object, optional fields, and a union at the root.
fn step() -> Value {
    json!({
        "type": "object",
        "properties": {
            "thought": { "type": "string" },
            "action": { "type": "string", "enum": ["files.read", "finish"] },
            "args": { "type": "object" },
            "answer": { "type": "string" },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "actions": { "type": "array", "items": {
                "type": "object",
                "properties": { "tool": { "type": "string" }, "args": { "type": "object" } },
                "required": ["tool", "args"],
                "additionalProperties": false
            } }
        },
        "required": ["thought"],
        "anyOf": [{ "required": ["action"] }, { "required": ["actions"] }],
        "additionalProperties": false
    })
}

fn rules_broken(schema: &Value, dialect: Dialect) -> Vec<String> {
    check(schema, dialect).iter().map(ToString::to_string).collect()
}

#[test]
fn what_openai_answers_with_400_is_found() {
    let broken = rules_broken(&step(), Dialect::OpenAi);
    for expected in [
        "the schema: `anyOf` stands alone",
        "the schema: `required` is an array including every key in properties; missing `action`",
        "properties/args: `additionalProperties` is required to be supplied and to be false",
    ] {
        assert!(broken.iter().any(|rule| rule.starts_with(expected)), "{expected}\n{broken:#?}");
    }
    let object = |property: Value| json!({ "type": "object", "properties": { "a": property }, "required": ["a"], "additionalProperties": false });
    for (property, expected) in [
        (json!({ "type": "string", "maxLength": 5 }), "properties/a: `maxLength` is not permitted"),
        (json!({ "type": "string", "default": "x" }), "properties/a: `default` is not permitted"),
        (json!({ "oneOf": [{ "type": "string" }] }), "properties/a: `oneOf` is not permitted"),
        (json!({ "type": "array" }), "properties/a: a list says what its `items` are"),
        (json!({ "type": "string", "format": "uri" }), "properties/a: the format `uri` is not supported"),
        (json!({ "type": "string", "pattern": "(?=a)b" }), "properties/a: the pattern `(?=a)b` looks around"),
        (json!({ "enum": ["a"] }), "properties/a: it has a `type` or `anyOf`"),
        (json!({}), "properties/a: it has a `type` or `anyOf`"),
    ] {
        let broken = rules_broken(&object(property), Dialect::OpenAi);
        assert!(broken.iter().any(|rule| rule.starts_with(expected)), "{expected}\n{broken:#?}");
    }
    assert_eq!(
        rules_broken(&object(json!({ "type": ["string", "null"], "pattern": "^a+$" })), Dialect::OpenAi),
        [""; 0]
    );
    assert!(!rules_broken(&json!({ "type": "array", "items": { "type": "string" } }), Dialect::OpenAi).is_empty());
}

#[test]
fn the_numbers_of_a_provider_are_held_at_their_edges() {
    let deep = |levels: usize| {
        let inner = json!({ "type": "string" });
        (0..levels).fold(inner, |inner, _| {
            json!({ "type": "object", "properties": { "a": inner }, "required": ["a"], "additionalProperties": false })
        })
    };
    assert_eq!(rules_broken(&deep(10), Dialect::OpenAi), [""; 0]);
    assert!(!rules_broken(&deep(11), Dialect::OpenAi).is_empty());
    let optional = |count: usize| {
        let properties: serde_json::Map<_, _> =
            (0..count).map(|number| (format!("f{number}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    };
    assert_eq!(rules_broken(&optional(24), Dialect::Anthropic), [""; 0]);
    assert_eq!(rules_broken(&optional(25), Dialect::Anthropic).len(), 1);
    let choice = |count: usize| {
        let values: Vec<_> = (0..count).map(|number| format!("v{number}")).collect();
        json!({ "type": "object", "properties": { "a": { "type": "string", "enum": values } }, "required": ["a"], "additionalProperties": false })
    };
    assert_eq!(rules_broken(&choice(1_000), Dialect::OpenAi), [""; 0]);
    assert_eq!(rules_broken(&choice(1_001), Dialect::OpenAi).len(), 1);
}

#[test]
fn any_schema_is_brought_into_the_rules_of_every_provider() {
    let tree = json!({
        "$defs": { "node": { "type": "object", "properties": { "name": { "type": "string" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } }, "required": ["name"] } },
        "$ref": "#/$defs/node"
    });
    let shapes = json!({ "oneOf": [
        { "type": "object", "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } }, "required": ["kind", "r"] },
        { "type": "object", "properties": { "kind": { "const": "box" }, "extra": {} }, "required": ["kind"] },
    ] });
    for schema in [
        step(),
        tree,
        shapes,
        json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "uniqueItems": true, "minItems": 3 }),
        json!({ "allOf": [
            { "type": "object", "properties": { "a": { "type": "string", "maxLength": 9 } }, "required": ["a"] },
            { "properties": { "b": { "enum": ["x", 1, null] } } },
        ] }),
        json!({ "type": "object", "properties": { "p": { "type": "array", "prefixItems": [{ "type": "string" }] } } }),
        json!({ "type": ["object", "null"], "properties": { "a": true } }),
    ] {
        for dialect in Dialect::ALL {
            let lowered = Lowered::of(&schema, dialect).unwrap_or_else(|| panic!("{dialect:?}: {schema}"));
            assert_eq!(rules_broken(&lowered.schema, dialect), [""; 0], "{dialect:?}: {schema}\n{}", lowered.schema);
        }
    }
}

#[track_caller]
fn raised(schema: &Value, reply: Value, expected: &Value) {
    let raised = Lowered::of(schema, Dialect::OpenAi).expect("a schema").raise(reply.to_string());
    assert_eq!(&serde_json::from_str::<Value>(&raised).expect("JSON"), expected);
}

#[test]
fn a_reply_comes_back_as_the_plugin_meant_it() {
    let lowered = Lowered::of(&step(), Dialect::OpenAi).unwrap();
    let properties = &lowered.schema["properties"];
    assert_eq!(lowered.schema["required"].as_array().unwrap().len(), 6);
    assert_eq!(
        (&properties["args"]["type"], &properties["answer"]["type"]),
        (&json!(["string", "null"]), &json!(["string", "null"]))
    );
    assert_eq!(properties["confidence"]["maximum"], 1);
    assert_eq!(lowered.schema.get("anyOf"), None);
    raised(
        &step(),
        json!({ "thought": "t", "action": "files.read", "args": "{\"path\":\"a\"}", "answer": null, "confidence": null, "actions": null }),
        &json!({ "thought": "t", "action": "files.read", "args": { "path": "a" } }),
    );
    raised(
        &step(),
        json!({ "thought": "t", "action": null, "args": null, "answer": null, "confidence": null,
            "actions": [{ "tool": "x", "args": "{}" }, { "tool": "y", "args": "not JSON" }] }),
        &json!({ "thought": "t", "actions": [{ "tool": "x", "args": {} }, { "tool": "y", "args": "not JSON" }] }),
    );
    // A value that is no object becomes one on the wire.
    raised(&json!({ "type": "array", "items": { "type": "integer" } }), json!({ "reply": [1, 2] }), &json!([1, 2]));
    let either = json!({ "anyOf": [
        { "type": "object", "properties": { "k": { "const": "a" }, "x": {} }, "required": ["k", "x"] },
        { "type": "object", "properties": { "k": { "const": "b" }, "x": { "type": "string" } }, "required": ["k"] },
    ] });
    raised(&either, json!({ "reply": { "k": "a", "x": "[1]" } }), &json!({ "k": "a", "x": [1] }));
    raised(&either, json!({ "reply": { "k": "b", "x": "[1]" } }), &json!({ "k": "b", "x": "[1]" }));
    // An optional field that may be null in the plugin's own schema keeps its null.
    let own = json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } });
    raised(&own, json!({ "a": null }), &json!({ "a": null }));
    assert_eq!(lowered.raise("cut {".to_owned()), "cut {");
}

#[test]
fn a_schema_that_a_provider_takes_is_sent_as_it_is() {
    let fine = json!({
        "type": "object", "properties": { "answer": { "type": "string", "enum": ["a", "b"] } },
        "required": ["answer"], "additionalProperties": false,
    });
    for dialect in Dialect::ALL {
        assert_eq!(Lowered::of(&fine, dialect).unwrap().schema, fine, "{dialect:?}");
    }
    assert_eq!(
        Lowered::of(&fine, Dialect::OpenAi).unwrap().raise("{ \"answer\" : \"a\" }".into()),
        "{ \"answer\" : \"a\" }"
    );
    // Bounds that a provider does not enforce go into the description, and stay otherwise.
    let bounded = json!({
        "type": "object", "properties": { "a": { "type": "string", "maxLength": 5, "description": "short" } },
        "required": ["a"], "additionalProperties": false,
    });
    assert_eq!(Lowered::of(&bounded, Dialect::Vllm).unwrap().schema, bounded);
    let told = Lowered::of(&bounded, Dialect::OpenAi).unwrap().schema;
    assert_eq!(told["properties"]["a"], json!({ "type": "string", "description": "short (maxLength: 5)" }));
}

#[test]
fn a_reply_of_any_shape_is_asked_for_in_words() {
    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    for schema in [json!({}), json!("nonsense"), json!({ "type": "object" }), open] {
        assert_eq!(Lowered::of(&schema, Dialect::OpenAi), None, "{schema}");
        assert_eq!(Lowered::of(&schema, Dialect::Anthropic), None, "{schema}");
    }
}

/// A guest writes the schema, so a hostile one must terminate.
#[test]
fn a_schema_without_end_is_sent_without_strict_mode_or_cut() {
    let mut wide = json!({ "type": "string" });
    for _ in 0..4 {
        wide = json!({ "anyOf": vec![wide; 12] });
    }
    assert_eq!(Lowered::of(&wide, Dialect::OpenAi), None);
    let itself = json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#/properties/b" } } });
    assert!(Lowered::of(&itself, Dialect::OpenAi).is_some());
}

#[test]
fn parameters_of_functions_are_mended_for_every_provider() {
    let union = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "anyOf": [
            { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] },
            { "type": "object", "properties": { "url": { "type": "string" }, "tags": { "type": "array" } } },
        ],
        "additionalProperties": false,
    });
    assert!(!check_parameters(&union, Dialect::OpenAi).is_empty());
    for schema in [union.clone(), json!({}), json!({ "type": "object" }), json!(null), step()] {
        for dialect in Dialect::ALL {
            let mended = parameters(&schema, dialect);
            assert_eq!(check_parameters(&mended, dialect), [], "{dialect:?}: {mended}");
        }
    }
    let mended = parameters(&union, Dialect::OpenAi);
    let names: Vec<_> = mended["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, mended.get("required")), (vec!["path", "url", "tags"], None));
    let fine = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    assert_eq!(parameters(&fine, Dialect::OpenAi), fine);
}
