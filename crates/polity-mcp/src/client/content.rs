//! Results of a server as text.

use super::definition::{clean, misfit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jsonschema::Validator;
use polity_kernel::tool::ToolOutput;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, SamplingMessageContentBlock};
use serde_json::Value;

/// What a call returned, with at most `most` bytes. `schema`: the schema that the tool promises for its structured content.
pub(super) fn output(result: &CallToolResult, schema: Option<&Validator>, most: usize) -> ToolOutput {
    let failed = result.is_error.unwrap_or(false);
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    match (&result.structured_content, schema) {
        (None, Some(_)) if !failed => {
            return ToolOutput::error(
                "the server broke its promise: it declares a schema for the results of this tool, and gave no structured result. The call was made",
            );
        }
        (Some(content), Some(schema)) => {
            if let Some(why) = misfit(schema, content) {
                return ToolOutput::error(format!(
                    "the server broke its promise: the structured result does not fit the schema that it declares: {why}. The call was made"
                ));
            }
        }
        _ => {}
    }
    if let Some(content) = &result.structured_content {
        // Servers should repeat it as text, for clients that do not know it.
        let repeated = |part: &String| serde_json::from_str::<Value>(part).is_ok_and(|value| value == *content);
        if !parts.iter().any(repeated) {
            parts.push(content.to_string());
        }
    }
    let text = parts.join("\n");
    if text.len() > most {
        let size = text.len();
        return ToolOutput::error(format!(
            "the result has {size} bytes, and at most {most} are taken. The call was made. Ask for less at once"
        ));
    }
    ToolOutput { error: failed, ..ToolOutput::text(text) }
}

/// A block of content as text.
pub(super) fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => note("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => note("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => contents(&resource.resource),
        ContentBlock::ResourceLink(link) => {
            let kind = link.mime_type.as_deref().map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("[resource {}: {}{kind}]", link.uri, link.name)
        }
        other => format!("[content of an unknown kind: {}]", clean(&format!("{other:?}"), 100)),
    }
}

/// The contents of a resource as text.
pub(super) fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            note(&format!("resource {uri}"), mime_type.as_deref().unwrap_or("of an unknown type"), blob)
        }
        other => format!("[a resource of an unknown kind: {}]", clean(&format!("{other:?}"), 100)),
    }
}

/// A message of a request for sampling as text.
pub(super) fn sampled(block: &SamplingMessageContentBlock) -> String {
    match block {
        SamplingMessageContentBlock::Text(text) => text.text.clone(),
        SamplingMessageContentBlock::Image(image) => note("image", &image.mime_type, &image.data),
        SamplingMessageContentBlock::Audio(audio) => note("audio", &audio.mime_type, &audio.data),
        _ => "[a call of a tool]".into(),
    }
}

/// A note in place of data that is no text.
fn note(what: &str, kind: &str, data: &str) -> String {
    match BASE64_STANDARD.decode(data) {
        Ok(bytes) => format!("[{what}: {}, {} bytes]", clean(kind, 100), bytes.len()),
        Err(_) => format!("[{what}: {}, damaged]", clean(kind, 100)),
    }
}
