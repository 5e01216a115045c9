//! Team files, and what is given over them.

use folkmoot_core::{
    check::{Checked, Input, Source, check},
    diagnostic::ENOUGH,
    event::Event,
    file::{
        models::Catalog,
        overrides::{Given, Override},
    },
    money::Price,
    run::Run,
    spec::Spec,
    time::Time,
};

/// Whatever a file holds, it is checked to the end, every finding points into it, and what has no
/// error can begin.
///
/// Behind a line `---override---` each line is one that wins over the file: `name=text`, or
/// `name:=json`.
pub fn team_file(bytes: &[u8]) {
    const OVERRIDES: &[u8] = b"\n---override---\n";
    let at = bytes.windows(OVERRIDES.len()).position(|it| it == OVERRIDES);
    let (file, given) = at.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at..]));
    let given = String::from_utf8_lossy(given);
    let overrides: Vec<Override> = given.lines().filter_map(overriding).collect();
    let checked = checked(Source::File(file), &overrides);
    assert_eq!(checked.is_valid(), checked.spec.is_some(), "{:#?}", checked.diagnostics);
    assert!(checked.diagnostics.len() <= ENOUGH);
    for told in &checked.diagnostics {
        let spans = told.at.into_iter().chain(told.also.iter().map(|(span, _)| *span));
        for span in spans {
            assert!(checked.text.get(span.start..span.end).is_some(), "{told:?}");
        }
        assert!(!told.message.contains('\n'), "{told:?}");
    }
    if let Some(spec) = &checked.spec {
        begin(spec);
    }
}

fn overriding(line: &str) -> Option<Override> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => (name, Given::Json(serde_json::from_str(value).ok()?)),
        None => (name, Given::Text(value.to_owned())),
    };
    Some(Override { name: name.to_owned(), value })
}

/// A check on a machine with two providers, some aliases and a price.
pub(crate) fn checked(source: Source<'_>, overrides: &[Override]) -> Checked {
    let price = Price { input: 1.0, output: 4.0, ..Price::default() };
    let name = || "openai/gpt".to_owned();
    let alias = |name: &str, chain: &[&str]| {
        (name.to_owned(), chain.iter().map(|target| (*target).to_owned()).collect())
    };
    let catalog = Catalog {
        default_model: Some(name()),
        aliases: [
            alias("fast", &["openai/gpt", "other/model"]),
            alias("ring", &["round"]),
            alias("round", &["ring"]),
        ]
        .into(),
        providers: ["openai".to_owned(), "other".to_owned()].into(),
        prices: [(name(), price)].into(),
        max_output_tokens: [(name(), 500)].into(),
        context_windows: [(name(), 4000)].into(),
        ..Catalog::default()
    };
    check(&Input {
        source,
        path: Some("team.yaml"),
        name: "team",
        overrides,
        task: Some("the task"),
        catalog: &catalog,
        list: &|_| Err("no such folder".into()),
        around: &[],
        variable: &|name| (name == "HOST").then(|| "a: b # ${HOST}".to_owned()),
        beside: &|_, _| Ok(None),
        read: &|path| match path {
            "lead.md" => Ok("Lead well.\n".into()),
            _ => Err("no such file".into()),
        },
    })
}

fn begin(spec: &Spec) {
    let json = serde_json::to_string(spec).expect("a spec is plain data");
    let read: Spec = serde_json::from_str(&json).expect("a spec can be read back");
    assert_eq!(read, *spec, "a spec is not what it was written as");
    let started = Event::Started { spec: read.into(), wall: 0, origin: None };
    let mut run = Run::default();
    let records = run.step(spec.program(), spec, [started], Time::default()).records;
    assert!(records.len() > 1, "nothing follows from the start");
}
