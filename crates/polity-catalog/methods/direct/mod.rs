//! One member answers at once, without reasons: the least that can be asked. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, form, stand, talk, verdict, wanted_answer};
use polity_kernel::Invalid;
use polity_kernel::ask::Want;
use polity_kernel::method::{
    Brief, Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Direct>(files);
}

/// It has no parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

/// One answer, without reasons.
pub struct Direct;

impl Method for Direct {
    const NAME: &'static str = "direct";
    const SUMMARY: &'static str = "One member answers at once, without reasons";
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 1, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(_: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Direct)
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let want = Want::Record(vec![("answer".into(), wanted_answer(desk))]);
        let heard = desk.ask(Brief::new(0, talk(desk, 0, &[], form(desk)), want)).await;
        let bare = heard.map(|value| value.field(0).cloned().unwrap_or(value));
        Ok(verdict(stand(desk, 0, bare).map(|stand| stand.answer)))
    }
}
