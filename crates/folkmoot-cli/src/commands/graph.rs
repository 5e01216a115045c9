use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use folkmoot_core::{
    diagnostic::Severity,
    view::drawing::{self, Drawing},
};
use folkmoot_runtime::export;
use serde_json::{Value, json};

use super::{
    new_file::NewFile,
    team::{Origin, Team},
};
use crate::{
    app::{App, Kept},
    exit::{Exit, Refusal},
};

/// Draws a team, or how a run went: who hands what to whom.
///
/// Of a run it shows who spoke when, and along a graph the edge that each step took and why. No model
/// is called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot graph team.yaml
  folkmoot graph last -o run.svg
  folkmoot graph run.jsonl --format dot | dot -Tpdf -o run.pdf")]
pub(crate) struct Graph {
    /// A team file; or a run: its id, the beginning of it, `last`, or an exported file (.jsonl)
    #[arg(value_name = "TEAM|RUN")]
    what: OsString,
    /// What is written [default: as the file of --out is named, else mermaid]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The file to write; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes over a file that is there
    #[arg(long, requires = "out")]
    force: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For Markdown pages.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture that needs nothing else.
    Svg,
}

/// How many links Mermaid draws unless it is told otherwise where it draws.
const MERMAIDS_LINKS: usize = 500;

impl Graph {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let format = self.format()?;
        let file = self.out.as_deref().map(|file| NewFile::begin(file, self.force)).transpose()?;
        let (drawing, whose) = match self.drawing(app).await? {
            Ok(drawn) => drawn,
            Err(exit) => return Ok(exit),
        };
        if format == Format::Mermaid && drawing.links() > MERMAIDS_LINKS {
            let links = drawing.links();
            app.tell(&format!(
                "warning: Mermaid draws {MERMAIDS_LINKS} links unless its maxEdges is raised; these are {links}. --format svg draws them all"
            ));
        }
        let text = app.page().text(&drawing.write(format.into()));
        let mut told = whose;
        told["format"] = format.name().into();
        if let Some(mut file) = file {
            file.write_all(text.as_bytes())?;
            let path = file.finish()?;
            told["file"] = path.display().to_string().into();
            if app.wants_json() {
                app.print_json(&told);
            } else {
                app.tell(&format!("drawn in {}", app.screen().line(&path.display().to_string())));
            }
        } else if app.wants_json() {
            told["drawing"] = text.into();
            app.print_json(&told);
        } else {
            app.print(&text);
        }
        Ok(Exit::DONE)
    }

    /// What is written: what is asked for, else what a file of that name holds.
    fn format(&self) -> Result<Format, Refusal> {
        let named = self.out.as_deref().and_then(Path::extension);
        let (None, Some(ending)) = (self.format, named) else {
            return Ok(self.format.unwrap_or(Format::Mermaid));
        };
        let ending = ending.to_string_lossy();
        Format::of(&ending).ok_or_else(|| {
            let message = format!("a file that ends in .{ending} cannot be drawn");
            let help = "let it end in .mmd, .mermaid, .txt, .dot, .gv or .svg, or give --format";
            Refusal::new("unknown_format", message).help(help)
        })
    }

    /// The drawing, and whose it is; or the exit of a command that has told what is wrong.
    ///
    /// What has a folder in it or an ending is a file, what it holds tells of what; a bare name means a
    /// run before it means a file.
    async fn drawing(&self, app: &App) -> Result<Result<(Drawing, Value), Exit>> {
        let path = Path::new(&self.what);
        let is_jsonl = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("jsonl"));
        if is_jsonl || export::is_exported(path) {
            return of_run(&app.kept(&self.what).await?).await.map(Ok);
        }
        let is_path = |what: &str| what.contains(std::path::is_separator);
        if self.what.to_str().is_none_or(is_path) || path.extension().is_some() {
            return self.team(app);
        }
        match app.kept(&self.what).await {
            Err(_) if path.is_file() => self.team(app),
            kept => of_run(&kept?).await.map(Ok),
        }
    }

    fn team(&self, app: &App) -> Result<Result<(Drawing, Value), Exit>> {
        let mut team = Team::check(app, &Origin::File(self.what.clone().into()), None, &[])?;
        let unusable = team.unusable(Severity::Warning);
        team.checked.diagnostics.extend(unusable);
        let spec = team.rehearsed_spec(app);
        Ok(spec.map(|spec| (drawing::of_team(&spec), json!({ "team": spec.team.name }))))
    }
}

async fn of_run(kept: &Kept) -> Result<(Drawing, Value)> {
    let loaded = kept.engine.load(&kept.run).await?;
    let id = kept.run.as_str();
    let drawing = drawing::of_run(id, &loaded.spec, &loaded.run, loaded.is_alive());
    Ok((drawing, json!({ "run_id": id })))
}

impl Format {
    /// What a file whose name ends so should hold.
    fn of(ending: &str) -> Option<Format> {
        match &*ending.to_ascii_lowercase() {
            "mmd" | "mermaid" | "txt" => Some(Format::Mermaid),
            "dot" | "gv" => Some(Format::Dot),
            "svg" => Some(Format::Svg),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Format::Mermaid => "mermaid",
            Format::Dot => "dot",
            Format::Svg => "svg",
        }
    }
}

impl From<Format> for drawing::Format {
    fn from(format: Format) -> drawing::Format {
        match format {
            Format::Mermaid => drawing::Format::Mermaid,
            Format::Dot => drawing::Format::Dot,
            Format::Svg => drawing::Format::Svg,
        }
    }
}
