//! Child processes of this executable: it starts itself again, and the child asks what to do and sends
//! replies.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::timing::BoxError;
use crossover_protocol::child::{Child, ChildError, Parent};
use crossover_system::own_executable;
use crossover_words::text::with_causes;

/// A process that has not asked what to do after this long never will.
const START: Duration = Duration::from_secs(60);
/// A process that sends nothing for this long counts as hung.
const SILENCE: Duration = Duration::from_secs(300);

/// Said of a child that ended, or did something else, before it asked.
const NEVER_ASKED: &str = "it never asked what to do; an executable that runs groups must call `run_child` or \
    `bench` first in `main`";

/// What a child is asked to do.
pub(crate) trait Request: Serialize + DeserializeOwned {
    /// The environment variable that tells a child of it.
    const VARIABLE: &'static str;
    /// The child's reply.
    type Reply: Serialize + DeserializeOwned;
}

/// Has a child do what is requested, with these variables, and hands its replies over until it ends.
///
/// # Errors
/// It cannot be started, fails, never asks or is silent for too long, or a signal has ended this run. The
/// child has ended then too.
pub(crate) fn ask<R: Request>(
    request: &R,
    variables: &[(&str, &str)],
    receive: impl FnMut(R::Reply),
) -> Result<(), BoxError> {
    if env::var_os(R::VARIABLE).is_some() {
        // This is the child, and would start another one, which would start another one.
        return Err(NEVER_ASKED.into());
    }
    let mut command = Command::new(own_executable()?);
    ask_by(command.envs(variables.iter().copied()), request, receive)
}

fn ask_by<R: Request>(
    command: &mut Command,
    request: &R,
    mut receive: impl FnMut(R::Reply),
) -> Result<(), BoxError> {
    let mut child = Child::start_asked(command.stdout(Stdio::null()), R::VARIABLE)?;
    match child.receive(START) {
        Ok(Some(())) => child.reply(request)?,
        Ok(None) => return ended(child).and(Err(NEVER_ASKED.into())),
        Err(ChildError::Silent(_)) => return Err(NEVER_ASKED.into()),
        Err(error) => return Err(error.into()),
    }
    while let Some(reply) = child.receive::<Result<R::Reply, String>>(SILENCE)? {
        receive(reply?);
    }
    ended(child)
}

/// # Errors
/// The child did not end well.
fn ended(mut child: Child) -> Result<(), BoxError> {
    match child.ends_within(Duration::ZERO)? {
        Some(status) if !status.success() => Err(format!("it ended with {status}").into()),
        _ => Ok(()),
    }
}

/// Sends a reply.
pub(crate) type Say<'a, R> = &'a mut dyn FnMut(R) -> io::Result<()>;

/// Does what this process is asked to and returns its exit code; `None` in a process without a request of
/// this kind.
pub(crate) fn answer<R: Request>(
    work: impl FnOnce(R, Say<'_, R::Reply>) -> Result<(), BoxError>,
) -> Option<ExitCode> {
    let channel = env::var_os(R::VARIABLE)?;
    let answered = || -> Result<(), BoxError> {
        let mut parent = Parent::connect(Path::new(&channel))?;
        let request = parent.ask(&())?;
        let worked = work(request, &mut |reply| parent.send(&Ok::<_, String>(reply)));
        if let Err(error) = &worked {
            parent.send(&Err::<R::Reply, _>(with_causes(&**error)))?;
        }
        worked
    };
    Some(match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    const CHILD: &str = "child::tests::child";

    #[derive(Serialize, Deserialize)]
    struct Count {
        to: u32,
        then_fails: bool,
    }

    impl Request for Count {
        const VARIABLE: &'static str = "CROSSOVER_TEST_COUNTS";
        type Reply = u32;
    }

    /// No test, but the child, in whose standard output the harness prints before and after it.
    #[test]
    #[ignore = "started by the test below"]
    fn child() {
        answer(|Count { to, then_fails }, say| {
            for number in 1..=to {
                println!("this belongs to the code in the child");
                say(number)?;
            }
            if then_fails {
                Err("no device".into())
            } else {
                Ok(())
            }
        });
    }

    #[test]
    fn a_child_replies_fails_or_never_asks() {
        let ask = |test: &str, to, then_fails| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", test, "--ignored", "--nocapture"]);
            let mut replies = Vec::new();
            let asked = ask_by(&mut command, &Count { to, then_fails }, |number| {
                replies.push(number);
            });
            (replies, asked.map_err(|error| error.to_string()))
        };
        assert_eq!(ask(CHILD, 2, false), (vec![1, 2], Ok(())));
        let failed = Err("no device".to_owned());
        assert_eq!(ask(CHILD, 1, true), (vec![1], failed));
        let (replies, asked) = ask("no such test", 1, false);
        assert!(replies.is_empty());
        let error = asked.unwrap_err();
        assert!(
            error.contains("call `run_child` or `bench` first"),
            "{error}"
        );
    }
}
