//! The JSON Schema of a table, for editors and other tools.

use serde_json::{Map, Value, json};

use crate::file::{
    extensions::Others,
    graph::TOPOLOGIES,
    shape::{Field, LONGEST, List, Record, Shape, Zero},
};

/// The JSON Schema (draft 2020-12) of files of the shape `root`.
///
/// It accepts what the reader of the same table accepts, so a text may be an unquoted number, and
/// null stands for every key that may be absent.
pub fn schema(root: &'static Record) -> Value {
    let mut definitions = Map::new();
    define(root, &mut definitions);
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), format!("Folkmoot {} file", root.name).into());
    schema.insert("$ref".into(), reference(root));
    schema.insert("$defs".into(), definitions.into());
    schema.into()
}

fn reference(record: &Record) -> Value {
    format!("#/$defs/{}", record.name).into()
}

fn define(record: &'static Record, definitions: &mut Map<String, Value>) {
    if definitions.contains_key(record.name) {
        return;
    }
    definitions.insert(record.name.into(), Value::Null);
    let mut properties = Map::new();
    for field in record.fields() {
        let property = property(field, definitions);
        properties.extend(field.spellings().map(|key| (key.to_owned(), property.clone())));
    }
    let required = record.fields().filter(|field| field.required).map(|field| field.name);
    let mut definition = json!({
        "description": record.doc,
        "type": "object",
        "properties": properties,
        "required": required.collect::<Vec<_>>(),
    });
    match Others::of(record) {
        Others::Refused => definition["additionalProperties"] = false.into(),
        Others::Conditions => {
            definition["additionalProperties"] = json!({ "type": ["object", "null"] });
        }
        // Only a topology of the team's own has parameters.
        Others::Parameters => {
            let known: Vec<&str> = record.fields().flat_map(Field::spellings).collect();
            definition["if"] = json!({
                "required": ["topology"],
                "properties": { "topology": { "type": "string", "not": { "enum": TOPOLOGIES } } },
            });
            definition["else"] = json!({ "propertyNames": { "enum": known } });
        }
    }
    definitions.insert(record.name.into(), definition);
}

fn property(field: &Field, definitions: &mut Map<String, Value>) -> Value {
    let value = of(&field.shape, definitions);
    let value =
        if field.required { value } else { json!({ "anyOf": [value, { "type": "null" }] }) };
    let Value::Object(mut property) = value else { return value };
    let default = field.default.map(|default| format!(" Default: {default}."));
    let later = matches!(field.shape, Shape::Later).then_some(" Not supported by this version.");
    let notes = [default.as_deref(), later].into_iter().flatten().collect::<String>();
    property.insert("description".into(), format!("{}{notes}", field.doc).into());
    property.into()
}

fn of(shape: &Shape, definitions: &mut Map<String, Value>) -> Value {
    match shape {
        Shape::Text | Shape::Filled => text(),
        Shape::Suggested(words) => json!({ "anyOf": [{ "enum": words }, { "type": "string" }] }),
        Shape::Word(words) => json!({ "enum": words }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Shape::Decimal => json!({ "type": "number", "minimum": 0 }),
        Shape::Time(zero) => time(*zero),
        Shape::List(List { of: shape, least, most, .. }) => {
            let items = of(shape, definitions);
            json!({ "type": "array", "items": items, "minItems": least, "maxItems": most })
        }
        Shape::Variables => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": text(),
        }),
        Shape::Headers => json!({ "type": "object", "additionalProperties": text() }),
        Shape::Record(record) => {
            define(record, definitions);
            json!({ "$ref": reference(record) })
        }
        Shape::String { known, .. } => {
            json!({ "anyOf": [{ "enum": known }, { "type": "string" }] })
        }
        Shape::TextOr(record) => {
            define(record, definitions);
            json!({ "anyOf": [text(), { "$ref": reference(record) }] })
        }
        Shape::LineOr { record, .. } => {
            define(record, definitions);
            json!({ "anyOf": [{ "type": "string" }, { "$ref": reference(record) }] })
        }
        Shape::FlagOr(record) => {
            define(record, definitions);
            json!({ "anyOf": [{ "type": "boolean" }, { "$ref": reference(record) }] })
        }
        Shape::WordOr(words, record) => {
            define(record, definitions);
            json!({ "anyOf": [{ "enum": words }, { "$ref": reference(record) }] })
        }
        Shape::Named(record) => {
            define(record, definitions);
            json!({ "type": "object", "additionalProperties": { "$ref": reference(record) } })
        }
        Shape::Json => json!({}),
        Shape::Later => json!({ "not": {} }),
    }
}

fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn time(zero: Zero) -> Value {
    let least = if zero == Zero::Allowed { "minimum" } else { "exclusiveMinimum" };
    json!({ "anyOf": [
        { "type": "number", least: 0, "maximum": LONGEST },
        { "type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?|\\.[0-9]+) *(ms|s|m|min|h|d)$" },
        { "const": "none" },
    ] })
}
