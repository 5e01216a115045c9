//! stub
pub(crate) mod diagnostics {
    use folkmoot_core::diagnostic::Diagnostic;
    pub(crate) fn tell(d: &[Diagnostic], name: &str, text: &str) {
        for d in d {
            let l = d.located(text);
            eprintln!(
                "{:?}[{}] {}:{:?}: {} {:?}",
                d.severity, d.code, name, l.line, d.message, d.help
            );
        }
    }
}
pub(crate) mod stdout {
    pub(crate) fn line(t: &str) {
        println!("{t}");
    }
    pub(crate) fn text(t: &str) {
        print!("{t}");
    }
    pub(crate) fn json(v: &impl serde::Serialize) {
        println!("{}", serde_json::to_string(v).expect("x"));
    }
}
pub(crate) mod stderr {
    pub(crate) fn line(t: &str) {
        eprintln!("{t}");
    }
}
pub(crate) mod moment {
    pub(crate) fn rfc3339(micros: u64) -> String {
        jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap_or(i64::MAX))
            .map(|t| t.to_string())
            .unwrap_or_default()
    }
    pub(crate) fn readable(mut v: serde_json::Value) -> serde_json::Value {
        for k in ["asked_at", "answered_at"] {
            if let Some(m) = v[k].as_u64() {
                v[k] = rfc3339(m).into();
            }
        }
        v
    }
}
pub(crate) mod result {
    use crate::world::Output;
    use folkmoot_core::view::Outcome;
    pub(crate) fn tell(o: &Outcome, out: Output) {
        if out == Output::Text {
            println!("{}", o.answer.as_deref().unwrap_or_default());
            eprintln!("{:?}", o.status)
        } else {
            super::stdout::json(o)
        }
    }
}
pub(crate) mod tables {
    use folkmoot_core::view::*;
    use serde_json::Value;
    pub(crate) fn runs(v: &[Value]) -> String {
        format!("{v:#?}")
    }
    pub(crate) fn agents(v: &[Value]) -> String {
        format!("{v:#?}")
    }
    pub(crate) fn models(c: &folkmoot_core::file::models::Catalog, v: &[Value]) -> String {
        format!("{c:?}{v:#?}")
    }
    pub(crate) fn call(c: &CallView) -> String {
        format!("{c:#?}")
    }
    pub(crate) fn run(o: &Outcome, c: &[CallView]) -> String {
        format!("{o:#?}{c:#?}")
    }
}
pub(crate) struct Watching;
impl Watching {
    pub(crate) fn begin(
        _: crate::world::Output,
        _: &folkmoot_runtime::engine::RunId,
        _: &folkmoot_core::spec::Spec,
    ) -> Watching {
        Watching
    }
    pub(crate) fn observer(&self) -> std::sync::Arc<dyn folkmoot_runtime::driver::Observer> {
        std::sync::Arc::new(folkmoot_runtime::driver::Unobserved)
    }
    pub(crate) fn end(self) {}
}
