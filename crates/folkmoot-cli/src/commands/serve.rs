use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Result;
use clap::Args;
use folkmoot_agents::end_orphans;
use folkmoot_core::{diagnostic::quoted, team::Sandbox};
use folkmoot_server::http::{self, Settings, Tokens};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::drive::Signals;
use crate::{
    app::App,
    exit::{Exit, Refusal},
    office::Local,
};

/// Serves runs over HTTP: a page in the browser, an API, teams as models.
///
/// Nobody but this machine can ask, and only with a token. The token is made at the first start, told
/// once as a link, and kept beside the file of the runs where only you can read it. Ctrl-C lets calls
/// under way be answered for ten seconds; the next start goes on with the runs that are left.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot serve --teams teams
  folkmoot serve --teams teams --workspace ~/project --sandbox write
  FOLKMOOT_TOKEN=… folkmoot serve --listen 0.0.0.0:7878 --allow-remote --name box.example")]
pub(crate) struct Serve {
    /// Where it listens
    #[arg(long, default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    listen: String,
    /// Lets other machines ask; needs a token of your own
    #[arg(long)]
    allow_remote: bool,
    /// The token that may do everything [default: one that is made]
    #[arg(long, env = "FOLKMOOT_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A token that may look at everything and change nothing
    #[arg(
        long,
        env = "FOLKMOOT_READ_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        requires = "token"
    )]
    read_token: Option<String>,
    /// A name under which the server is asked, with a port if it is another; may be given several times
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// The folder of the team files that requests may name
    #[arg(long, value_name = "FOLDER")]
    teams: Option<PathBuf>,
    /// The only folder that requests may work in
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    workspace: PathBuf,
    /// The most that agents may do: read-only, write or full
    #[arg(long, value_name = "LEVEL", default_value = "read-only")]
    sandbox: String,
    /// How many runs go on at once; 64 more may wait
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    max_runs: u16,
    /// Goes on with the runs that the server before this one has left (it does unless --no-resume)
    #[arg(long, overrides_with = "no_resume")]
    resume: bool,
    /// Leaves them
    #[arg(long, overrides_with = "resume")]
    no_resume: bool,
}

impl Serve {
    pub(crate) async fn run(self, app: &Arc<App>) -> Result<Exit> {
        let address = self.address()?;
        let (tokens, made) = self.tokens(app)?;
        let machine = self.machine(app)?;
        let listener =
            TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))?;
        let mut signals = Signals::listen()?;
        let ends = CancellationToken::new();
        let token = ends.clone();
        tokio::spawn(async move {
            loop {
                signals.next().await;
                if token.is_cancelled() {
                    std::process::exit(130);
                }
                token.cancel();
            }
        });
        if end_orphans().await > 0 {
            app.tell("ended programs that were left behind when Folkmoot was killed");
        }
        self.greet(app, listener.local_addr()?, made.as_deref())?;
        let settings = Settings {
            tokens,
            names: self.names,
            max_runs: self.max_runs.into(),
            resumes: !self.no_resume,
        };
        http::serve(listener, machine, settings, ends).await?;
        Ok(Exit::DONE)
    }

    /// Where to listen; refused if others could ask and nobody said that they may.
    fn address(&self) -> Result<SocketAddr, Refusal> {
        let named = self.listen.to_socket_addrs().ok().and_then(|mut all| all.next());
        let address = named.ok_or_else(|| {
            let message = format!("--listen {} is no address", quoted(&self.listen));
            Refusal::new("bad_value", message).help("as in 127.0.0.1:7878")
        })?;
        if address.ip().is_loopback() {
            return Ok(address);
        }
        if !self.allow_remote {
            let message = format!("other machines could ask at {address}");
            let help = "--allow-remote lets them, with a token of your own";
            return Err(Refusal::new("remote_not_allowed", message).help(help));
        }
        if self.token.is_none() {
            let message = format!("other machines can ask at {address}, so a token is needed");
            let help = "--token, or the variable FOLKMOOT_TOKEN, says which one";
            return Err(Refusal::new("token_required", message).help(help));
        }
        Ok(address)
    }

    /// Who may ask, and the token if it was just made.
    fn tokens(&self, app: &App) -> Result<(Tokens, Option<String>)> {
        let tokens = match &self.token {
            Some(token) => Tokens::given(token, self.read_token.as_deref()).map(|it| (it, None)),
            None => Tokens::kept(&app.token_file()?),
        };
        Ok(tokens.map_err(|error| Refusal::new("bad_token", error.to_string()))?)
    }

    /// What requests may use of this machine. The process works in the workspace from now on.
    fn machine(&self, app: &Arc<App>) -> Result<Arc<Local>> {
        let sandbox = Sandbox::named(&self.sandbox).ok_or_else(|| {
            let message = format!("--sandbox {} is no level", quoted(&self.sandbox));
            let allowed = ["read-only", "write", "full"].map(str::to_owned).to_vec();
            Refusal { allowed, ..Refusal::new("invalid_sandbox", message) }
        })?;
        let folder = |flag: &str, folder: &PathBuf| {
            let found = std::fs::canonicalize(folder).ok().filter(|found| found.is_dir());
            found.ok_or_else(|| {
                let message = format!("{flag} {} is no folder", quoted(&folder.to_string_lossy()));
                Refusal::new("bad_value", message)
            })
        };
        let teams = self.teams.as_ref().map(|it| folder("--teams", it)).transpose()?;
        let workspace = folder("--workspace", &self.workspace)?;
        std::env::set_current_dir(&workspace)?;
        let local = Local::new(app.clone(), sandbox, &workspace)?.with_teams(teams.as_deref())?;
        Ok(Arc::new(local))
    }

    /// Tells where the server is, and its token if that was just made.
    fn greet(&self, app: &App, address: SocketAddr, made: Option<&str>) -> Result<()> {
        let place = format!("http://{address}/");
        let link = made.map(|token| format!("{place}#token={token}"));
        let file = app.token_file()?.display().to_string();
        if app.wants_json() {
            let mut told = json!({ "url": place, "link": link });
            if self.token.is_none() {
                told["token_file"] = file.into();
            }
            app.print_json(&told);
        } else {
            app.print(link.as_deref().unwrap_or(&place));
            let file = app.screen().line(&file);
            match (&self.token, &link) {
                (Some(_), _) => app.tell("the token is the one that was given"),
                (None, Some(_)) => {
                    app.tell(&format!("the link is told once; its token is kept in {file}"));
                }
                (None, None) => app.tell(&format!("the token is kept in {file}")),
            }
        }
        Ok(())
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Refusal {
    let (code, help) = match error.kind() {
        std::io::ErrorKind::AddrInUse => ("address_in_use", "--listen takes another port"),
        _ => ("cannot_listen", "--listen takes another address"),
    };
    Refusal::new(code, format!("cannot listen at {address}: {error}")).help(help)
}
