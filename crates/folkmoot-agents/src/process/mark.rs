//! The variable by which the programs are known that Folkmoot has started, and whose they are.

use std::sync::OnceLock;

use folkmoot_runtime::store::Owner;
use uuid::Uuid;

/// Its name.
pub(super) const MARK: &str = "FOLKMOOT_PROCESS";

/// A new mark: a name of its own, and the process that makes it: its id, when it started, and where
/// its id means something.
pub(super) fn new() -> String {
    static OURS: OnceLock<String> = OnceLock::new();
    let ours = OURS.get_or_init(|| {
        let Owner { process, started, boot, .. } = Owner::this("");
        format!("{process} {started} {boot}")
    });
    format!("{} {ours}", Uuid::new_v4())
}

/// Whose a mark is.
#[cfg(target_os = "linux")]
pub(super) fn owner(mark: &str) -> Option<Owner> {
    let mut parts = mark.splitn(4, ' ').skip(1);
    let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let boot = parts.next()?.into();
    Some(Owner { process, started, boot, host: "".into(), label: "".into() })
}
