//! Confinement of child processes by the operating system (agents.md §6).
//!
//! On Linux a restriction holds for the thread that asks for it and for whatever that thread starts.
//! So a child is started by a thread of its own, which gives up its rights first and ends with that:
//! nothing of ours runs between fork and exec.

use std::{io, path::Path};

use folkmoot_core::team::Sandbox;
use tokio::process::{Child, Command};

/// Where a child may write, by its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confinement<'a> {
    pub(super) level: Sandbox,
    pub(super) workspace: &'a Path,
    pub(super) scratch: &'a Path,
}

/// Why levels below `full` cannot be enforced on this machine, if so.
pub fn unenforceable() -> Option<String> {
    system::examine().err()
}

impl Confinement<'_> {
    /// Starts `command` with no more rights than its level gives.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        match self.level {
            Sandbox::Full => command.spawn(),
            Sandbox::ReadOnly | Sandbox::Write => system::spawn(command, &self.writable()),
        }
    }

    fn writable(&self) -> Vec<&Path> {
        match self.level {
            Sandbox::Write => vec![self.scratch, self.workspace],
            Sandbox::ReadOnly | Sandbox::Full => vec![self.scratch],
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{collections::BTreeMap, env::consts::ARCH, error::Error, io, path::Path, thread};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use tokio::{
        process::{Child, Command},
        runtime::Handle,
    };

    type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

    /// Devices that everybody may write to, as nothing is kept in them.
    const SINKS: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

    /// System calls that lead around the rules for files and the network: Landlock knows of TCP only,
    /// a socket in a folder may belong to a server with more rights, and a ring makes calls that no
    /// filter sees.
    const DENIED: &[i64] = &[
        libc::SYS_socket,
        libc::SYS_io_uring_setup,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_kexec_load,
    ];

    /// What Landlock does not see: changes of modes, owners and attributes. Where nothing is to be
    /// written, nobody needs them.
    const METADATA: &[i64] = &[
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown,
    ];

    pub(super) fn examine() -> std::result::Result<(), String> {
        let examined = ruleset().map(|_| ()).and_then(|()| filter(true).map(|_| ()));
        examined.map_err(|error| format!("this system cannot confine processes: {error}"))
    }

    pub(super) fn spawn(command: &mut Command, writable: &[&Path]) -> io::Result<Child> {
        let runtime = Handle::current();
        thread::scope(|scope| {
            let starter = scope.spawn(|| {
                let _inside = runtime.enter();
                confine(writable)
                    .map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
                command.spawn()
            });
            starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
        })
    }

    /// Gives up the rights of this thread, for good.
    pub(super) fn confine(writable: &[&Path]) -> Result<()> {
        let mut ruleset = ruleset()?;
        for path in writable {
            ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, everything()))?;
        }
        ruleset.restrict_self()?;
        let is_read_only = writable.len() == 1;
        apply_filter(&filter(is_read_only)?)?;
        Ok(())
    }

    fn everything() -> landlock::BitFlags<AccessFs> {
        AccessFs::from_all(ABI::V5)
    }

    /// Nothing may be written but to sinks. What any supported kernel can do must be done; the rest
    /// where it is known.
    fn ruleset() -> Result<RulesetCreated> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V3))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(everything())?
            .handle_access(AccessNet::from_all(ABI::V4))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::from_read(ABI::V5)))?;
        for sink in SINKS.iter().filter_map(|path| PathFd::new(path).ok()) {
            ruleset = ruleset.add_rule(PathBeneath::new(sink, AccessFs::from_file(ABI::V5)))?;
        }
        Ok(ruleset)
    }

    fn filter(is_read_only: bool) -> Result<BpfProgram> {
        let metadata = METADATA.iter().filter(|_| is_read_only);
        let denied: BTreeMap<_, _> =
            DENIED.iter().chain(metadata).map(|call| (*call, Vec::new())).collect();
        let denial = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(denied, SeccompAction::Allow, denial, ARCH.try_into()?)?;
        Ok(filter.try_into()?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        fs::{self, File, Permissions},
        net::{TcpListener, TcpStream, UdpSocket},
        os::unix::{
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener, UnixStream},
        },
        thread,
    };

    use super::*;

    #[test]
    fn whoever_gave_up_its_rights_has_no_sockets_and_changes_nothing() {
        if unenforceable().is_some() {
            // Where it cannot be confined a program is refused, which its own tests show.
            return;
        }
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (scratch, file) = (folder.path().join("scratch"), folder.path().join("file"));
        fs::create_dir(&scratch).expect("it can be made");
        fs::write(&file, "old").expect("it can be written");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let tcp_address = tcp.local_addr().expect("it has one");
        let unix_address = scratch.join("socket");
        let _unix = UnixListener::bind(&unix_address).expect("it can be bound");
        let tried = thread::spawn(move || {
            system::confine(&[&scratch]).expect("this system can confine");
            let _ = File::create(scratch.join("new")).expect("there it may write");
            [
                ("tcp", TcpStream::connect(tcp_address).map(|_| ())),
                ("udp", UdpSocket::bind("127.0.0.1:0").map(|_| ())),
                ("a listener", TcpListener::bind("127.0.0.1:0").map(|_| ())),
                ("a socket in a folder", UnixStream::connect(unix_address).map(|_| ())),
                ("datagrams", UnixDatagram::unbound().map(|_| ())),
                ("a mode", fs::set_permissions(&file, Permissions::from_mode(0o777))),
                ("an owner", std::os::unix::fs::chown(&file, Some(1), None)),
                ("a file", File::create(&file).map(|_| ())),
                ("a link", fs::hard_link(&file, scratch.join("link"))),
                ("a move", fs::rename(&file, scratch.join("moved"))),
            ]
        });
        for (what, tried) in tried.join().expect("it does not panic") {
            let error = tried.expect_err(what);
            let is_denied = error.kind() == io::ErrorKind::PermissionDenied
                || error.raw_os_error() == Some(libc::EXDEV);
            assert!(is_denied, "{what}: {error}");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, path::Path};

    use tokio::process::{Child, Command};

    const WHY: &str = "processes can be confined on Linux only";

    pub(super) fn examine() -> Result<(), String> {
        Err(WHY.to_owned())
    }

    pub(super) fn spawn(_: &mut Command, _: &[&Path]) -> io::Result<Child> {
        Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
    }
}
