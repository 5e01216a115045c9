//! The built-in tools (agents.md §6): files, search, a shell, pages of the web.
//!
//! Whatever a model asks for is judged here once more: what it was granted, what its sandbox allows,
//! and where a path leads. A refusal is an answer that the model reads, with a word of its own first.

mod fetch;
mod file;
mod folder;
mod handed;
mod search;
mod shell;
mod walk;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Usage},
    team::Sandbox,
};
use folkmoot_runtime::{
    backend::Response,
    tools::{ToolRequest, Toolbox},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{sync::Mutex, task::spawn_blocking};

pub use self::fetch::Reach;
use self::folder::Folder;
pub(crate) use self::handed::Handed;
use crate::process;

/// What came of a tool: what the model reads.
type Result<T> = std::result::Result<T, Fault>;

/// The tools that work on this machine.
#[derive(Debug, Default)]
pub struct Workbench {
    /// The environment of this process.
    ours: BTreeMap<String, String>,
    /// Files and folders that no agent may touch, such as Folkmoot's own.
    closed: Vec<PathBuf>,
    fetch: fetch::Fetch,
    /// Lets one file be written at a time, so that edits side by side are all in it.
    writing: Mutex<()>,
}

impl Workbench {
    /// Tools whose processes get what they need of `ours`, the environment of this process, and which
    /// keep their hands off the files in `closed`.
    pub fn new(
        ours: impl IntoIterator<Item = (String, String)>,
        closed: Vec<PathBuf>,
        reach: Reach,
    ) -> Workbench {
        let (ours, fetch) = (ours.into_iter().collect(), fetch::Fetch::new(reach));
        Workbench { ours, closed, fetch, writing: Mutex::new(()) }
    }

    async fn use_tool(&self, request: &ToolRequest) -> Result<String> {
        let name = &*request.call.name;
        if !request.agent.is_granted(name) {
            return Err(denied(name));
        }
        let root = Path::new(&*request.place.workspace.folder);
        let arguments = &request.call.arguments;
        match name {
            "file.read" => {
                let read: file::Read = parsed(arguments)?;
                self.in_folder(root, move |folder, _| file::read(folder, &read)).await
            }
            "file.list" => {
                let list: file::List = parsed(arguments)?;
                self.in_folder(root, move |folder, goes_on| file::list(folder, &list, goes_on))
                    .await
            }
            "file.write" if request.agent.sandbox == Sandbox::ReadOnly => {
                let text = "denied: the sandbox is read-only, nothing can be written";
                Err(Fault::failed(FailureKind::Denied, text))
            }
            "file.write" => {
                let write: file::Write = parsed(arguments)?;
                let _alone = self.writing.lock().await;
                self.in_folder(root, move |folder, _| file::write(folder, &write)).await
            }
            "search" => {
                let search: search::Search = parsed(arguments)?;
                self.in_folder(root, move |folder, goes_on| search.run(folder, goes_on)).await
            }
            "shell" => {
                let line: shell::Line = parsed(arguments)?;
                let environment = process::environment(&request.place.environment, &self.ours);
                let folder = self.open(root)?;
                line.run(&folder, root, &environment, request.agent.sandbox).await
            }
            "fetch" => self.fetch.get(&parsed(arguments)?).await,
            _ => {
                let text = format!("not_found: there is no tool {name}");
                Err(Fault::failed(FailureKind::NotFound, text))
            }
        }
    }

    fn open(&self, root: &Path) -> Result<Folder> {
        Folder::open(root, &self.closed)
    }

    /// Works in the workspace for as long as somebody waits for it.
    async fn in_folder(
        &self,
        root: &Path,
        work: impl FnOnce(&Folder, &dyn Fn() -> bool) -> Result<String> + Send + 'static,
    ) -> Result<String> {
        let folder = self.open(root)?;
        let waiting = Arc::new(Waiting(AtomicBool::new(true)));
        let seen = Arc::clone(&waiting);
        let done = spawn_blocking(move || work(&folder, &|| seen.0.load(Ordering::Relaxed)));
        let _leaves = Leaves(&waiting);
        done.await.unwrap_or_else(|error| Err(other(format!("it broke off: {error}"))))
    }
}

/// Whether somebody still waits for what a thread does.
struct Waiting(AtomicBool);

/// Nobody waits any longer once this is dropped.
struct Leaves<'a>(&'a Waiting);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl Toolbox for Workbench {
    async fn call(&self, request: ToolRequest) -> Response {
        let outcome = self.use_tool(&request).await.map(|text| Answer::text(text).into());
        Response { outcome, usage: Usage::default() }
    }
}

/// The arguments of a tool as it takes them.
fn parsed<T: DeserializeOwned>(arguments: &Value) -> Result<T> {
    T::deserialize(arguments).map_err(|error| other(format!("bad_arguments: {error}")))
}

fn denied(name: &str) -> Fault {
    Fault::failed(FailureKind::Denied, format!("denied: {name}"))
}

fn other(text: impl Into<Arc<str>>) -> Fault {
    Fault::failed(FailureKind::Other, text)
}

#[cfg(all(test, unix))]
mod tests;
