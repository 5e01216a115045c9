//! One process that drives a run, seen from outside.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use folkmoot_core::sim::Random;
use serde_json::Value;

use crate::witness::{Whole, Witness};

/// A time after which a process hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is seen of it.
#[derive(Debug)]
pub(crate) enum Sign {
    /// It asked a model.
    Asked,
    /// It showed this line on standard output.
    Line(String),
    /// It closed standard output.
    Over,
}

/// A moment in its life.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// So many microseconds after its start.
    After(u64),
    /// At its request of this number, from 1.
    AtRequest(usize),
    /// At that request, of which half a reply has come.
    AtHalfReply(usize),
    /// When it shows the record of this number, from 1.
    AtRecord(usize),
    /// Its end.
    AtEnd,
}

impl Moment {
    /// One that a run like `whole` is likely to live through.
    pub(crate) fn random(random: &mut Random, whole: &Whole) -> Moment {
        let requests = whole.asked.len() as u64;
        match random.below(5) {
            0 | 1 => Moment::After(random.below(whole.micros)),
            2 => Moment::AtRequest(1 + random.below(requests) as usize),
            3 => Moment::AtHalfReply(1 + random.below(requests) as usize),
            _ => Moment::AtRecord(1 + random.below(whole.records as u64) as usize),
        }
    }
}

/// A process under way.
pub(crate) struct Life {
    child: Child,
    began: Instant,
    signs: Receiver<Sign>,
    requests: usize,
    /// The JSON that it has shown so far.
    pub(crate) shown: Vec<Value>,
    is_over: bool,
}

impl Life {
    /// Starts a process whose models `witness` is, and of whose requests one may be answered by half.
    pub(crate) fn start(command: &mut Command, witness: &Witness, until: Moment) -> Life {
        let (tell, signs) = channel();
        let half = match until {
            Moment::AtHalfReply(number) => Some(number - 1),
            Moment::After(_) | Moment::AtRequest(_) | Moment::AtRecord(_) | Moment::AtEnd => None,
        };
        witness.attend(tell.clone(), half);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the binary can be started");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || listen(stdout, &tell));
        let (began, shown) = (Instant::now(), Vec::new());
        Life { child, began, signs, requests: 0, shown, is_over: false }
    }

    /// Waits for a moment; false if the process ends before.
    pub(crate) fn reaches(&mut self, moment: Moment) -> bool {
        loop {
            let has_come = match moment {
                Moment::AtRequest(number) | Moment::AtHalfReply(number) => self.requests >= number,
                Moment::AtRecord(number) => self.shown.len() >= number,
                Moment::After(_) | Moment::AtEnd => false,
            };
            if has_come || self.is_over {
                return has_come;
            }
            let patience = match moment {
                Moment::After(micros) => Duration::from_micros(micros),
                Moment::AtRequest(_)
                | Moment::AtHalfReply(_)
                | Moment::AtRecord(_)
                | Moment::AtEnd => PATIENCE,
            };
            match self.signs.recv_timeout(patience.saturating_sub(self.began.elapsed())) {
                Ok(sign) => self.take(sign),
                Err(RecvTimeoutError::Disconnected) => self.is_over = true,
                Err(RecvTimeoutError::Timeout) => {
                    assert!(matches!(moment, Moment::After(_)), "it hangs");
                    return true;
                }
            }
        }
    }

    fn take(&mut self, sign: Sign) {
        match sign {
            Sign::Asked => self.requests += 1,
            Sign::Line(line) => self.shown.extend(serde_json::from_str::<Value>(&line)),
            Sign::Over => self.is_over = true,
        }
    }

    /// Kills it; false if it had ended by itself.
    pub(crate) fn kill(&mut self) -> bool {
        self.child.kill().expect("it was not waited for");
        self.end().is_none()
    }

    /// Waits for its end, and for what it wrote before; gives its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.reaches(Moment::AtEnd);
        self.child.wait().expect("it can be waited for").code()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stdout: impl BufRead, tell: &Sender<Sign>) {
    // Whoever listened may have given up.
    stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(Sign::Line(line))));
    let _ = tell.send(Sign::Over);
}
