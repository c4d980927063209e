//! Opens a file of thresholds and answers questions from it.

use std::env;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::curve::{PreparedOperation, PreparedPlace};
use crate::decision::{self, Answer, Question, Reason};
use crate::host_match::{Concern, HostInfo};
use crate::thresholds::{Choice, Operation, Residency, SCHEMA, Thresholds};

/// A larger file is not a file of thresholds, bytes.
const LARGEST: u64 = 16 << 20;

/// The variable that names the file of this machine.
const VARIABLE: &str = "CROSSOVER_THRESHOLDS";

/// Thresholds that answer questions.
#[derive(Clone, Debug)]
pub struct Advice {
    thresholds: Thresholds,
    /// The operations of `thresholds`, in the same order.
    operations: Vec<PreparedOperation>,
    /// Indices into `operations`, sorted by name.
    by_name: Vec<usize>,
    concerns: Vec<Concern>,
    pub(crate) is_other_machine: bool,
}

/// Why there is no advice.
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    Io(PathBuf, std::io::Error),
    /// The file is not JSON of this form.
    Form(serde_json::Error),
    /// The file has a later version.
    Newer(u32),
    /// The file has impossible numbers; the sentence names them.
    Numbers(String),
    /// An error of the content of this file.
    InFile(PathBuf, Box<Self>),
    /// This machine has no file.
    NotFound,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Form(error) => {
                f.write_str("no thresholds of `crossover export --thresholds`: ")?;
                // It tells what the file holds, which must not act on the terminal that shows it.
                error.to_string().chars().try_for_each(|c| match c {
                    '"' | '\'' | '\\' => f.write_char(c),
                    _ => write!(f, "{}", c.escape_debug()),
                })
            }
            Error::Newer(schema) => write!(
                f,
                "the thresholds are of version {schema}, and this program knows {SCHEMA}: update it, or export them again with its version of crossover"
            ),
            Error::Numbers(sentence) => f.write_str(sentence),
            Error::InFile(path, error) => write!(f, "{}: {error}", path.display()),
            Error::NotFound => write!(
                f,
                "no thresholds: measure with crossover and run `crossover export --thresholds`, or name a file in {VARIABLE}"
            ),
        }
    }
}

/// The sentence of `Display`, which `main` then prints for an error that it returns.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(_, error) => Some(error),
            Error::InFile(_, error) => Some(error),
            Error::Form(_) | Error::Newer(_) | Error::Numbers(_) | Error::NotFound => None,
        }
    }
}

impl Advice {
    /// Reads a file of any machine, since the caller named it; [`check`](Self::check) compares the
    /// machine.
    ///
    /// # Errors
    /// The file cannot be read; or it is not a file of thresholds or has a later version, in an [`Error::InFile`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let io = |error| Error::Io(path.to_owned(), error);
        let file = File::open(path).map_err(io)?;
        let mut text = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut text).map_err(io)?;
        let is_large = text.len() as u64 > LARGEST;
        let advice = if is_large {
            Err(Error::Numbers("too large for thresholds".to_owned()))
        } else {
            Self::parse(&text)
        };
        advice.map_err(|error| Error::InFile(path.to_owned(), Box::new(error)))
    }

    /// The thresholds of this machine, in the file that the variable `CROSSOVER_THRESHOLDS` names,
    /// else in [`data_file`](Self::data_file). If the file is of another machine, every answer is
    /// [`Unsure`](crate::Choice::Unsure).
    ///
    /// # Errors
    /// There is no file, or an error of [`open`](Self::open).
    pub fn of_this_machine() -> Result<Self, Error> {
        let named = env::var_os(VARIABLE)
            .filter(|name| !name.is_empty())
            .map(PathBuf::from);
        let in_data = || Self::data_file().filter(|path| path.exists());
        let path = named.or_else(in_data).ok_or(Error::NotFound)?;
        Ok(Self::open(path)?.check(&HostInfo::detect()))
    }

    /// The default path of this machine's thresholds, to which `crossover export --thresholds` writes:
    /// `crossover/thresholds.json` in `$XDG_DATA_HOME`, else on Windows in `%LOCALAPPDATA%`, else in
    /// `~/.local/share`. `None` without a home.
    pub fn data_file() -> Option<PathBuf> {
        let folder = |variable| {
            let folder = env::var_os(variable).map(PathBuf::from);
            folder.filter(|path| path.is_absolute())
        };
        let in_home = || Some(folder("HOME")?.join(".local/share"));
        let data = folder("XDG_DATA_HOME").or_else(|| folder("LOCALAPPDATA"));
        let data = data.or_else(in_home)?;
        Some(data.join("crossover").join("thresholds.json"))
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        #[derive(serde::Deserialize)]
        struct Version {
            schema: u32,
        }
        // A later version may have another form.
        let version: Version = serde_json::from_slice(text).map_err(Error::Form)?;
        if version.schema > SCHEMA {
            return Err(Error::Newer(version.schema));
        }
        Self::new(serde_json::from_slice(text).map_err(Error::Form)?)
    }

    /// Prepares thresholds that were read or made otherwise.
    ///
    /// # Errors
    /// The thresholds have impossible numbers.
    pub fn new(thresholds: Thresholds) -> Result<Self, Error> {
        let mut operations: Vec<PreparedOperation> =
            Vec::with_capacity(thresholds.operations.len());
        let mut by_name: Vec<usize> = Vec::with_capacity(thresholds.operations.len());
        for operation in &thresholds.operations {
            let name = &operation.name;
            let wrong = |what: &str| Error::Numbers(format!("the operation {name:?} {what}"));
            match by_name.binary_search_by(|&at| operations[at].name.cmp(name)) {
                Ok(_) => return Err(wrong("is there twice")),
                Err(place) => by_name.insert(place, operations.len()),
            }
            let is_time = |ns: f64| (0.0..=1e30).contains(&ns);
            if !operation.first_call_ns.is_none_or(is_time) {
                return Err(wrong("has a first call without a time"));
            }
            let mut places = [const { None }; Residency::ALL.len()];
            for place in &operation.places {
                let slot = &mut places[place.data as usize];
                if slot.is_some() {
                    return Err(wrong("has two answers for data in one place"));
                }
                *slot = Some(PreparedPlace::new(place).map_err(wrong)?);
            }
            operations.push(PreparedOperation {
                name: name.clone(),
                shape: operation.shape,
                first_call_ns: operation.first_call_ns,
                is_of_programs: operation.sides.is_some(),
                places,
            });
        }
        Ok(Self {
            thresholds,
            operations,
            by_name,
            concerns: Vec::new(),
            is_other_machine: false,
        })
    }

    /// Compares the machine of the thresholds with a machine, usually [`HostInfo::detect`]. If the machine
    /// is another one, every choice becomes [`Unsure`](crate::Choice::Unsure), beside that machine's
    /// times. With another driver, or if the thresholds are old, the choices stand.
    #[must_use]
    pub fn check(mut self, here: &HostInfo) -> Self {
        self.concerns = Concern::all(&self.thresholds, here);
        self.is_other_machine = self.concerns.iter().any(Concern::is_other_machine);
        self
    }

    /// Why the thresholds may not hold, as [`check`](Self::check) found it.
    pub fn concerns(&self) -> &[Concern] {
        &self.concerns
    }

    /// The content of the file.
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Decides which side is faster. Allocates nothing.
    pub fn decide(&self, question: &Question) -> Answer {
        let answer = match self.find(question.operation) {
            Some(at) => decision::decide(&self.operations[at], question),
            None => Answer::unsure(Reason::NoOperation),
        };
        let choice = if self.is_other_machine {
            Choice::Unsure
        } else {
            answer.choice
        };
        Answer {
            choice,
            there: answer.choice,
            other_machine: self.is_other_machine,
            ..answer
        }
    }

    /// The index of the operation of this name in [`Thresholds::operations`].
    fn find(&self, name: &str) -> Option<usize> {
        let named = |at: &usize| self.operations[*at].name.as_str().cmp(name);
        let place = self.by_name.binary_search_by(named);
        Some(self.by_name[place.ok()?])
    }

    /// The content of the file about an operation.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        Some(&self.thresholds.operations[self.find(name)?])
    }
}
