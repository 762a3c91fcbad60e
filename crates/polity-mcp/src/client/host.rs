//! What a server may ask of this side: an answer of a model. Everything else is declined.

use super::content::sampled;
use crate::limited::Watch;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ErrorData, Implementation, Role,
    SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request of a server for an answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// The instructions, if there are any.
    pub system: Option<String>,
    /// The conversation. Images and sound are notes in it.
    pub messages: Vec<Said>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
}

/// A message of a [`Sampling`].
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Whether the model said it; else the user did.
    pub by_model: bool,
    /// What was said.
    pub text: String,
}

/// The future of an answer: the text, or why there is none.
pub type Sampled<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// Who answers servers that ask for a model. The implementation decides which model, and counts the cost towards a budget.
pub trait Sampler: Send + Sync {
    /// Answers, or says why not: the server is told.
    fn sample<'a>(&'a self, asked: &'a Sampling) -> Sampled<'a>;
}

/// This side of a connection.
#[derive(Clone)]
pub(super) struct Host {
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Whether the server said that its tools changed.
    pub changed: Arc<AtomicBool>,
    pub watch: Arc<Watch>,
    /// Maximum answers of a model for one request.
    pub samples: usize,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.sampler.is_some() {
            capabilities.sampling = Some(Default::default());
        }
        ClientConfig::new(capabilities, Implementation::new("polity", env!("CARGO_PKG_VERSION")))
    }

    async fn create_message(
        &self,
        asked: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let declined = |why: &str| ErrorData::invalid_request(why.to_owned(), None);
        let Some(sampler) = &self.sampler else { return Err(declined("no model answers servers here")) };
        if self.watch.sample() > self.samples {
            return Err(declined(&format!("at most {} answers of a model are given for one call", self.samples)));
        }
        let messages = asked.messages.iter().map(|message| Said {
            by_model: message.role == Role::Assistant,
            text: message.content.iter().map(sampled).collect::<Vec<_>>().join("\n"),
        });
        let asked =
            Sampling { system: asked.system_prompt, messages: messages.collect(), max_tokens: asked.max_tokens };
        let text = sampler.sample(&asked).await.map_err(|why| declined(&why))?;
        let answer = CreateMessageResult::new(SamplingMessage::assistant_text(text), "polity".into());
        Ok(answer.with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}
