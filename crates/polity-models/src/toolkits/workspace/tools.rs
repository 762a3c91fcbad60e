//! The tools: their schemas, and which part does a call.

use super::{Done, Limits, SESSION, Shared, Trouble, Version, Workspace};
use polity_kernel::tool::{Arguments, EffectClass, ToolSpec};
use polity_kernel::tree::nearest;
use serde_json::{Map, Value, json};

/// Whether a tool works in a sandbox.
pub(super) fn sandboxed(tool: &str) -> bool {
    matches!(tool, "python" | "shell" | "run_tests")
}

/// The tools of these names.
pub(super) fn offered(names: &[&str], limits: &Limits) -> Result<Vec<ToolSpec>, String> {
    if let Some(unknown) = names.iter().find(|name| !Workspace::TOOLS.contains(name)) {
        let meant = nearest(unknown, Workspace::TOOLS).map(|near| format!(", did you mean `{near}`?"));
        let have = Workspace::TOOLS.join("`, `");
        return Err(format!("a workspace has no tool `{unknown}`{} (it has `{have}`)", meant.unwrap_or_default()));
    }
    Ok(all(limits).into_iter().filter(|tool| names.contains(&&*tool.name)).collect())
}

fn spec(name: &str, effect: EffectClass, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, description, &schema, effect).in_session(SESSION)
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(least: u64, most: u64, description: &str) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "description": description})
}

const MOST_LINES: u64 = 1_000_000_000;

fn all(limits: &Limits) -> Vec<ToolSpec> {
    let Limits { sandbox, longest, .. } = *limits;
    let seconds = sandbox.seconds;
    let path = || text("Path of a file, relative to the workspace, like src/main.py");
    let time = || number(1, longest, &format!("Time limit; {seconds} if left out"));
    let (reads, writes) = (EffectClass::Reads, EffectClass::Writes);
    let python = format!(
        "Runs Python code in a session that keeps its variables from call to call. Shows what is printed and the value of the last \
         expression. The working directory is the workspace; there is no network. Limit: {seconds} seconds."
    );
    let shell = "Runs a command with bash in the workspace, without network. Shows what it prints and its exit status. Only files in the \
                 workspace are kept; processes end with the command.";
    let patch = "Applies a unified diff to files of the workspace, all of it or nothing. Files are created from /dev/null and deleted to \
                 /dev/null.";
    vec![
        spec("python", writes, &python, json!({"code": text("Python code")}), &["code"]),
        spec("shell", writes, shell, json!({"command": text("Command for bash -c"), "seconds": time()}), &["command"]),
        spec(
            "read_file",
            reads,
            "Shows lines of a text file, with their numbers.",
            json!({
                "path": path(),
                "from": number(1, MOST_LINES, "First line, from 1; 1 if left out"),
                "lines": number(1, MOST_LINES, "Number of lines; 500 if left out"),
            }),
            &["path"],
        ),
        spec(
            "write_file",
            writes,
            "Writes a text file, replacing one that is there. Makes missing folders.",
            json!({"path": path(), "text": text("The whole contents")}),
            &["path", "text"],
        ),
        spec(
            "edit_file",
            writes,
            "Replaces a text in a file by another. The old text must match exactly and be there once, unless `all` is true.",
            json!({
                "path": path(),
                "old": text("Text to replace, with enough lines around it to be unique"),
                "new": text("Text to put in its place"),
                "all": {"type": "boolean", "description": "Replace every occurrence"},
            }),
            &["path", "old", "new"],
        ),
        spec("apply_patch", writes, patch, json!({"patch": text("Unified diff")}), &["patch"]),
        spec(
            "search_files",
            reads,
            "Searches text files for a regular expression, line by line. Shows path:line: text.",
            json!({
                "pattern": text("Regular expression, without look-around and back-references"),
                "path": text("File or folder to search; the whole workspace if left out"),
            }),
            &["pattern"],
        ),
        spec(
            "list_files",
            reads,
            "Lists files and folders with their sizes.",
            json!({
                "path": text("Folder to list; the whole workspace if left out"),
                "depth": number(1, 100, "How deep; 3 if left out"),
            }),
            &[],
        ),
        spec(
            "run_tests",
            writes,
            "Runs the tests of the workspace and reports how many passed and failed, and the end of what was printed.",
            json!({"command": text("Command for bash -c; if left out, pytest if it is installed, else python3 -m unittest")}),
            &[],
        ),
    ]
}

/// The arguments of a call.
struct Given<'a>(&'a Map<String, Value>);

impl<'a> Given<'a> {
    fn text(&self, name: &str) -> Result<&'a str, Trouble> {
        self.optional(name)?.ok_or_else(|| Trouble::Told(format!("the argument `{name}` is missing")))
    }

    fn optional(&self, name: &str) -> Result<Option<&'a str>, Trouble> {
        let text = |value: &'a Value| value.as_str().ok_or_else(|| Trouble::Told(format!("`{name}` must be a string")));
        self.0.get(name).map(text).transpose()
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64, Trouble> {
        let wrong = || Trouble::Told(format!("`{name}` must be a whole number of at least 1"));
        let number = |value: &Value| value.as_u64().filter(|number| *number > 0).ok_or_else(wrong);
        self.0.get(name).map_or(Ok(otherwise), number)
    }

    fn truth(&self, name: &str) -> Result<bool, Trouble> {
        let wrong = || Trouble::Told(format!("`{name}` must be true or false"));
        self.0.get(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(wrong))
    }
}

impl Shared {
    /// Does a call of an offered tool.
    pub(super) fn dispatch(&self, tool: &str, arguments: &Arguments, version: Version) -> Result<Done, Trouble> {
        let given = Given(arguments);
        let seconds = self.limits.sandbox.seconds;
        match tool {
            "python" => self.python(version, given.text("code")?),
            "shell" => {
                let seconds = given.number("seconds", seconds)?.min(self.limits.longest);
                self.shell(version, given.text("command")?, seconds)
            }
            "run_tests" => self.run_tests(version, given.optional("command")?),
            "read_file" => {
                let (from, lines) = (given.number("from", 1)?, given.number("lines", 500)?);
                self.read_file(version, given.text("path")?, from, lines)
            }
            "write_file" => self.write_file(version, given.text("path")?, given.text("text")?),
            "edit_file" => {
                let (old, new) = (given.text("old")?, given.text("new")?);
                self.edit_file(version, given.text("path")?, old, new, given.truth("all")?)
            }
            "apply_patch" => self.apply_patch(version, given.text("patch")?),
            "search_files" => {
                self.search_files(version, given.text("pattern")?, given.optional("path")?.unwrap_or_default())
            }
            "list_files" => {
                self.list_files(version, given.optional("path")?.unwrap_or_default(), given.number("depth", 3)?)
            }
            _ => Err(Trouble::Told(format!("there is no tool `{tool}`"))),
        }
    }

    fn shell(&self, version: Version, command: &str, seconds: u64) -> Result<Done, Trouble> {
        let (status, mut text, version) = self.command(version, command, seconds)?;
        if status != 0 {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text += &match status {
                1.. => format!("(exit status {status})"),
                _ => format!("(ended by signal {})", -status),
            };
        }
        Ok(Done { text, error: status != 0, version })
    }
}
