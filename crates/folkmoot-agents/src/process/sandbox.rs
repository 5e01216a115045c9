//! Confinement of child processes by the operating system (agents.md §6).
//!
//! On Linux a restriction holds for the thread that asks for it and for whatever that thread starts.
//! So a child is started by a thread of its own, which gives up its rights first and ends with that:
//! nothing of ours runs between fork and exec.

use std::{io, path::Path};

use folkmoot_core::team::Sandbox;
use tokio::process::{Child, Command};

use super::Beyond;

/// Where a child may write, by its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confinement<'a> {
    pub(super) level: Sandbox,
    pub(super) workspace: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) beyond: Beyond<'a>,
}

/// What a thread keeps of its rights.
#[derive(Clone, Debug)]
struct Rights<'a> {
    /// Where it may write.
    writable: Vec<&'a Path>,
    /// Whether modes, owners and times stay as they are.
    keeps_metadata: bool,
    online: bool,
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
            Sandbox::ReadOnly | Sandbox::Write => system::spawn(command, &self.rights()),
        }
    }

    fn rights(&self) -> Rights<'_> {
        let beyond = self.beyond.writable.iter().map(|path| &**path).filter(|path| path.exists());
        let workspace = (self.level == Sandbox::Write).then_some(self.workspace);
        let writable = [self.scratch].into_iter().chain(workspace).chain(beyond);
        let keeps_metadata = workspace.is_none() && self.beyond.writable.is_empty();
        let writable = writable.collect();
        Rights { writable, keeps_metadata, online: self.beyond.online }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{collections::BTreeMap, env::consts::ARCH, error::Error, io, thread};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
    };
    use rustix::{
        io::Errno,
        thread::{CapabilitySet, remove_capability_from_bounding_set},
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter,
    };
    use tokio::{
        process::{Child, Command},
        runtime::Handle,
    };

    use super::Rights;

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
        libc::SYS_open_tree,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_add_key,
        libc::SYS_keyctl,
        libc::SYS_shmget,
        libc::SYS_msgget,
        libc::SYS_semget,
        // What others that belong to the user get of the machine.
        libc::SYS_setpriority,
        libc::SYS_ioprio_set,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        // Changes attributes of files whatever their folder.
        FILE_SETATTR,
    ];

    /// Newer than the names of system calls.
    const FILE_SETATTR: i64 = 469;

    /// Requests that change attributes of a file that is open for reading: those of ext4 and of xfs,
    /// which others took over.
    const SET_FLAGS: [u64; 2] = [0x4008_6602, 0x401c_5820];

    /// The rights of an administrator that a child keeps: those over files, which the rules for files
    /// narrow.
    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::FSETID);

    /// What Landlock does not see: changes of modes, owners, times and attributes. Where nothing is to be
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
        libc::SYS_utimensat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat,
    ];

    pub(super) fn examine() -> std::result::Result<(), String> {
        let rights = Rights { writable: Vec::new(), keeps_metadata: true, online: false };
        let examined = ruleset(&rights).map(|_| ()).and_then(|()| filter(&rights).map(|_| ()));
        examined.map_err(|error| format!("this system cannot confine processes: {error}"))
    }

    pub(super) fn spawn(command: &mut Command, rights: &Rights<'_>) -> io::Result<Child> {
        let runtime = Handle::current();
        thread::scope(|scope| {
            let starter = scope.spawn(|| {
                let _inside = runtime.enter();
                confine(rights)
                    .map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
                command.spawn()
            });
            starter.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
        })
    }

    /// Gives up the rights of this thread, for good.
    pub(super) fn confine(rights: &Rights<'_>) -> Result<()> {
        let mut ruleset = ruleset(rights)?;
        for path in &rights.writable {
            let all = if path.is_dir() { everything() } else { AccessFs::from_file(ABI::V5) };
            ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, all))?;
        }
        ruleset.restrict_self()?;
        give_up_administration()?;
        apply_filter(&filter(rights)?)?;
        Ok(())
    }

    /// What a program starts with is bounded by this set, even if it is an administrator's.
    fn give_up_administration() -> Result<()> {
        for right in CapabilitySet::all().difference(KEPT).iter() {
            // Whoever may not give up rights has none of them.
            match remove_capability_from_bounding_set(right) {
                Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn everything() -> landlock::BitFlags<AccessFs> {
        AccessFs::from_all(ABI::V5)
    }

    /// Nothing may be written but to sinks. What any supported kernel can do must be done; the rest
    /// where it is known.
    fn ruleset(rights: &Rights<'_>) -> Result<RulesetCreated> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V3))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(everything())?;
        if !rights.online {
            ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        let mut ruleset = ruleset
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::from_read(ABI::V5)))?;
        for sink in SINKS.iter().filter_map(|path| PathFd::new(path).ok()) {
            ruleset = ruleset.add_rule(PathBeneath::new(sink, AccessFs::from_file(ABI::V5)))?;
        }
        Ok(ruleset)
    }

    /// The calls of `ioctl` with this request.
    fn request(number: u64) -> std::result::Result<SeccompRule, seccompiler::BackendError> {
        let is_it = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number)?;
        SeccompRule::new(vec![is_it])
    }

    /// The sockets that are none of the network's. Those in folders may belong to servers with more
    /// rights, whoever reaches the network.
    fn no_network() -> std::result::Result<SeccompRule, seccompiler::BackendError> {
        let is_other = |family: i32| {
            let family = u64::from(family.unsigned_abs());
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
        };
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(is_other);
        SeccompRule::new(families.into_iter().collect::<std::result::Result<_, _>>()?)
    }

    fn filter(rights: &Rights<'_>) -> Result<BpfProgram> {
        let metadata = METADATA.iter().filter(|_| rights.keeps_metadata);
        let mut denied: BTreeMap<_, _> =
            DENIED.iter().chain(metadata).map(|call| (*call, Vec::new())).collect();
        let requests: std::result::Result<Vec<_>, _> = SET_FLAGS.into_iter().map(request).collect();
        denied.insert(libc::SYS_ioctl, requests?);
        if rights.online {
            denied.insert(libc::SYS_socket, vec![no_network()?]);
        }
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
        time::SystemTime,
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
            let writable = vec![&*scratch];
            let rights = Rights { writable, keeps_metadata: true, online: false };
            system::confine(&rights).expect("this system can confine");
            let _ = File::create(scratch.join("new")).expect("there it may write");
            [
                ("tcp", TcpStream::connect(tcp_address).map(|_| ())),
                ("udp", UdpSocket::bind("127.0.0.1:0").map(|_| ())),
                ("a listener", TcpListener::bind("127.0.0.1:0").map(|_| ())),
                ("a socket in a folder", UnixStream::connect(unix_address).map(|_| ())),
                ("datagrams", UnixDatagram::unbound().map(|_| ())),
                ("a mode", fs::set_permissions(&file, Permissions::from_mode(0o777))),
                ("an owner", std::os::unix::fs::chown(&file, Some(1), None)),
                (
                    "a time",
                    File::open(&file).and_then(|it| it.set_modified(SystemTime::UNIX_EPOCH)),
                ),
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
    use std::io;

    use tokio::process::{Child, Command};

    use super::Rights;

    const WHY: &str = "processes can be confined on Linux only";

    pub(super) fn examine() -> Result<(), String> {
        Err(WHY.to_owned())
    }

    pub(super) fn spawn(_: &mut Command, _: &Rights<'_>) -> io::Result<Child> {
        Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
    }
}
