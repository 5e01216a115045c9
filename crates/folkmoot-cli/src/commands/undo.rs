//! The files that a run begins from that goes on from another (agents.md §10).

use std::path::Path;

use anyhow::Result;
use clap::Args;
use folkmoot_agents::{Changes, Kept, NotPutBack, PutBack, Putting, end_orphans};
use folkmoot_core::undo::Basis;
use folkmoot_runtime::{driver::Driver, engine::Loaded};

use crate::{app::App, exit::Refusal};

/// What becomes of the files of the workspace.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Undo {
    /// Leaves the files of the workspace as they are now
    #[arg(long, conflicts_with = "discard_changes")]
    keep_files: bool,
    /// Puts files back that have changed since the run left them; what they are now is kept aside
    #[arg(long)]
    discard_changes: bool,
}

impl Undo {
    /// Puts the files back that calls may have changed which are asked again, if they are kept.
    pub(crate) async fn put_back(self, app: &App, origin: &Loaded, driver: &Driver) -> Result<()> {
        let (Some(from), Some(to)) = (&origin.spec.workspace, &driver.spec().workspace) else {
            return Ok(());
        };
        if self.keep_files || from.folder != to.folder {
            return Ok(());
        }
        let (key, tree) = match driver.basis(&origin.records) {
            Basis::AsTheyAre => return Ok(()),
            Basis::Unknown { key, why } => {
                let text = format!("the files are left as they are, not as before {key}: {why}");
                app.tell(&format!("warning: {}", app.screen().line(&text)));
                return Ok(());
            }
            Basis::Before { key, tree } => (key, tree),
        };
        // Nobody else is to be at work in them.
        end_orphans().await;
        let putting = Putting {
            folder: Path::new(&*from.folder),
            tree: &tree,
            origin: origin.id.as_str(),
            run: driver.id().as_str(),
            changes: if self.discard_changes { Changes::Discarded } else { Changes::Respected },
        };
        match app.archive()?.put_back(putting).await {
            Ok(PutBack::Unchanged) => {}
            Ok(PutBack::Restored(kept)) => {
                let text = format!("the files are again what they were before {key}");
                app.tell(&format!("{}\n", app.screen().line(&text)));
                app.tell(&format!("{}\n", app.screen().line(&aside(&kept, &from.folder))));
            }
            Err(NotPutBack::NotKept) => {
                let text = format!(
                    "the files are left as they are, not as before {key}: {}",
                    NotPutBack::NotKept
                );
                app.tell(&format!("warning: {}", app.screen().line(&text)));
            }
            Err(why @ (NotPutBack::Changed(_) | NotPutBack::Failed(_))) => {
                let message = format!(
                    "the files in {} are not put back to what they were before {key}: {why}",
                    from.folder
                );
                let help = "--discard-changes puts them back and keeps aside what they are now; \
                            --keep-files goes on with them as they are";
                return Err(Refusal::new("workspace_changed", message).help(help).into());
            }
        }
        Ok(())
    }
}

/// Where what was there before is kept, and how it is brought back.
fn aside(kept: &Kept, folder: &str) -> String {
    let Kept { tree, repository } = kept;
    let repository = repository.display();
    format!(
        "what they were is kept: git --git-dir={repository} --work-tree={folder} restore \
         --source={tree} -- ."
    )
}
