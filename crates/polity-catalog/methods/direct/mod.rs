//! One member answers at once, without reasons: the simplest baseline. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, form, stand, talk, verdict, wanted_answer};
use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Member, Method, Prompt, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Direct>(files);
}

/// One answer, without reasons.
pub struct Direct;

impl Method for Direct {
    const NAME: &'static str = "direct";
    const SUMMARY: &'static str = "One member answers at once, without reasons";
    const RECORDS: &'static [Records] = &ANSWERS;
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[FORM, LENGTH, DECEIVE];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Direct)
    }

    fn idle(&self, _: &[Member], member: usize) -> Option<String> {
        (member > 0).then(|| "the first member does all the work".into())
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let response_format = ResponseFormat::Record(vec![("answer".into(), wanted_answer(context))]);
        let heard = context.ask(Brief::new(0, talk(context, 0, &[], &form(context)), response_format)).await;
        let bare = heard.map(|value| value.field(0).cloned().unwrap_or(value));
        Ok(verdict(stand(context, 0, bare).map(|stand| stand.answer)))
    }
}
