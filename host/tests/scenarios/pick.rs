//! `pick PATH [COLUMN...]`: parts of the JSON on standard input, one value a line, or with columns these parts of each.
//!
//! A path is made of `name`, `[2]`, `[*]` for all of a list, `[name=value]` for those of a list that have this value
//! (or the value itself where it has), and `{}` for the JSON that a text holds. `.` is the whole value. Each value of
//! several on standard input is taken in turn.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

/// The command.
pub fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            // The reader may have closed the pipe.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pick: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let (rows, columns) = paths.split_first().ok_or("name a path")?;
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for value in serde_json::Deserializer::from_str(&input).into_iter::<Value>() {
        for row in found(value.map_err(|error| error.to_string())?, rows)? {
            let parts = if columns.is_empty() {
                vec![shown(&row)]
            } else {
                columns.iter().map(|path| part(&row, path)).collect::<Result<Vec<_>, _>>()?
            };
            text.push_str(&parts.join("  "));
            text.push('\n');
        }
    }
    Ok(text)
}

/// The first part of a value that a path leads to, as it is shown.
fn part(value: &Value, path: &str) -> Result<String, String> {
    Ok(found(value.clone(), path)?.first().map(shown).unwrap_or_default())
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The parts of a value that a path leads to.
fn found(value: Value, path: &str) -> Result<Vec<Value>, String> {
    let mut values = vec![value];
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        let (step, after) = first_step(rest)?;
        let next: Result<Vec<Vec<Value>>, String> = values.iter().map(|value| taken(value, step)).collect();
        values = next?.concat();
        rest = after.trim_start_matches('.');
    }
    Ok(values)
}

/// A step of a path and what follows it.
fn first_step(path: &str) -> Result<(&str, &str), String> {
    let end = match path.chars().next() {
        Some('[') => path.find(']').ok_or_else(|| format!("no `]` in `{path}`"))? + 1,
        Some('{') => path.find('}').ok_or_else(|| format!("no `}}` in `{path}`"))? + 1,
        _ => path.find(['.', '[', '{']).unwrap_or(path.len()),
    };
    Ok(path.split_at(end))
}

fn taken(value: &Value, step: &str) -> Result<Vec<Value>, String> {
    if step == "{}" {
        return Ok(vec![value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()]);
    }
    let Some(inner) = step.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Ok(vec![value[step].clone()]);
    };
    if inner == "*" {
        return Ok(match value {
            Value::Object(fields) => fields.values().cloned().collect(),
            other => other.as_array().cloned().unwrap_or_default(),
        });
    }
    if let Ok(at) = inner.parse::<usize>() {
        return Ok(vec![value[at].clone()]);
    }
    let (path, wanted) = inner.split_once('=').ok_or_else(|| format!("`{step}` is no step of a path"))?;
    let all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let mut taken = Vec::new();
    for one in all {
        if part(&one, path)? == wanted {
            taken.push(one);
        }
    }
    Ok(taken)
}
