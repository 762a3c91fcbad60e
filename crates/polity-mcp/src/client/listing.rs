//! Resources and prompts of a server.

use super::content;
use super::definition::clean;
use super::link::{Connection, Failure, Link, unasked};
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams, Role};
use rmcp::service::ServiceError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// What it is filled in with.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a [`Prompt`].
#[derive(Clone, Debug, PartialEq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is; may be empty.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Whether it is a message of the model; else one of the user.
    pub by_model: bool,
    /// Its text. Images and sound are notes in it.
    pub text: String,
}

/// Lists the resources, one a line, and the templates of their URIs.
pub(super) async fn resources(link: &Link, connection: &Arc<Connection>) -> Result<String, Failure> {
    let most = link.limits().description;
    let line = |uri: &str, name: &str, kind: Option<&str>, description: Option<&str>| {
        let mut line = format!("{}: {}", clean(uri, most), clean(name, most));
        let _ = kind.map(|kind| write!(line, " ({})", clean(kind, 100)));
        let _ = description.map(|text| write!(line, ". {}", clean(text, most)));
        line.replace('\n', " ")
    };
    let service = &connection.service;
    let lines =
        async {
            let mut lines = Vec::new();
            let mut pages = link.pages();
            while let Some(page) = pages.next() {
                let result = service.list_resources(page).await.map_err(|error| unasked(&error))?;
                lines.extend(
                    (result.resources.iter())
                        .map(|one| line(&one.uri, &one.name, one.mime_type.as_deref(), one.description.as_deref())),
                );
                pages.came(result.resources.len(), result.next_cursor)?;
            }
            let mut pages = link.pages();
            while let Some(page) = pages.next() {
                let result = match service.list_resource_templates(page).await {
                    Ok(result) => result,
                    // Templates are optional.
                    Err(ServiceError::McpError(_)) => break,
                    Err(error) => return Err(unasked(&error)),
                };
                lines.extend((result.resource_templates.iter()).map(|one| {
                    line(&one.uri_template, &one.name, one.mime_type.as_deref(), one.description.as_deref())
                }));
                pages.came(result.resource_templates.len(), result.next_cursor)?;
            }
            Ok(lines.join("\n"))
        };
    link.answered(connection, link.limits().call, lines).await
}

/// Reads a resource.
pub(super) async fn read(link: &Link, connection: &Arc<Connection>, uri: &str) -> Result<String, Failure> {
    let asked = connection.service.read_resource(ReadResourceRequestParams::new(uri));
    let result = link.ask(connection, link.limits().call, asked).await?;
    Ok(result.contents.iter().map(content::contents).collect::<Vec<_>>().join("\n"))
}

pub(super) async fn prompts(link: &Link, connection: &Arc<Connection>) -> Result<Vec<Prompt>, Failure> {
    if !connection.has_prompts {
        return Ok(Vec::new());
    }
    let (most, patience): (usize, Duration) = (link.limits().description, link.limits().call);
    let text = |text: &Option<String>| clean(text.as_deref().unwrap_or_default(), most);
    let asked = async {
        let mut prompts = Vec::new();
        let mut pages = link.pages();
        while let Some(page) = pages.next() {
            let result = connection.service.list_prompts(page).await.map_err(|error| unasked(&error))?;
            prompts.extend(result.prompts.iter().map(|prompt| {
                Prompt {
                    name: prompt.name.clone(),
                    description: text(&prompt.description),
                    arguments: (prompt.arguments.iter().flatten())
                        .map(|argument| PromptArgument {
                            name: argument.name.clone(),
                            description: text(&argument.description),
                            required: argument.required.unwrap_or(false),
                        })
                        .collect(),
                }
            }));
            pages.came(result.prompts.len(), result.next_cursor)?;
        }
        Ok(prompts)
    };
    link.answered(connection, patience, asked).await
}

pub(super) async fn prompt(
    link: &Link,
    connection: &Arc<Connection>,
    name: &str,
    arguments: &BTreeMap<String, String>,
) -> Result<Vec<PromptMessage>, Failure> {
    let arguments = arguments.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let asked = async { connection.service.get_prompt(params).await.map_err(|error| unasked(&error)) };
    let result = link.answered(connection, link.limits().call, asked).await?;
    let message = |message: &rmcp::model::PromptMessage| PromptMessage {
        by_model: message.role == Role::Assistant,
        text: content::block(&message.content),
    };
    Ok(result.messages.iter().map(message).collect())
}
