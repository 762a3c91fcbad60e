//! Big Five traits in the personas of members (`systems/power-of-personality`): the table of a sweep shows the effects that are planted in a
//! program that reads its persona, and no others.

use crate::harness::{Scripted, replied, scratch};
use polity::Simulation;
use polity::kernel::ask::{Effect, Part, ResponseFormat, Role, Value};
use polity::kernel::digest::{Kind, RowHash};
use polity::kernel::rng::{Draws, Stream};
use polity_driver::sweep::ContrastRow;
use std::collections::BTreeMap;
use std::path::Path;

/// Words of a persona, and the effects planted for them: on the probability of a slip, on the number of ideas, on the number from which
/// they are drawn.
const PLANTED: [(&str, f64, i64, i64); 5] = [
    ("thorough and orderly", -0.15, 0, 0),
    ("easy-going and hasty", 0.15, 0, 0),
    ("easily upset", 0.12, 0, 0),
    ("curious and imaginative", 0.0, 1, 20),
    ("prefer what is familiar", 0.0, -1, -15),
];
const SLIP: f64 = 0.3;
const IDEAS: i64 = 3;
const POOL: i64 = 30;

/// Arms with an effect on closed tasks, and on open ones: with its sign.
const CLOSED: [(&str, f64); 3] = [("conscientious", 1.0), ("careless", -1.0), ("nervous", -1.0)];
const OPEN: [(&str, f64); 2] = [("open", 1.0), ("conventional", -1.0)];
const SINGLES: [&str; 10] = [
    "open",
    "conventional",
    "conscientious",
    "careless",
    "outgoing",
    "reserved",
    "agreeable",
    "disagreeable",
    "nervous",
    "calm",
];

/// The reply of a model that does what its persona says, if it reads it.
fn reply(effect: &Effect, seed: u64, reads: bool) -> Value {
    let request = &effect.request;
    let of = |role: Role| request.messages.iter().filter(move |message| message.role == role);
    let persona: String = of(Role::System).map(|message| message.rendered()).collect();
    let (mut slip, mut ideas, mut pool) = (SLIP, IDEAS, POOL);
    for (words, on_slip, on_ideas, on_pool) in PLANTED {
        if reads && persona.contains(words) {
            (slip, ideas, pool) = (slip + on_slip, ideas + on_ideas, pool + on_pool);
        }
    }
    let id = effect.id;
    // A member with another persona draws other random numbers.
    let key = RowHash::new(Kind::Request, 0).bytes(persona.as_bytes()).word(u64::from(id.item));
    let key = key.word(u64::from(request.sample)).finish() as u64;
    let mut draws = Draws::new(seed ^ key, Stream::Model, id.round, id.actor);
    let ResponseFormat::Record(fields) = &request.response_format else { panic!("a record is wanted") };
    if fields[0].0 == "ideas" {
        // An idea is two words that no other has.
        let idea = |k: u64| Value::Text(format!("a{k} b{k}"));
        let ideas = (0..ideas).map(|_| idea(draws.below(pool as u64))).collect();
        return Value::Record(vec![Value::List(ideas)]);
    }
    let question = of(Role::User).next().unwrap().rendered();
    let digits = question.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    let right: u64 = digits.sum();
    let alone = if draws.chance(slip) { right + 1 + draws.below(9) } else { right }.to_string();
    let said = |role: Role| {
        of(role).flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::Said { answer, .. } => Some(answer.clone()),
            _ => None,
        })
    };
    // In a discussion it keeps its answer, unless most say another.
    let own = said(Role::Assistant).next_back();
    let heard: Vec<String> = said(Role::User).collect();
    let most = heard.iter().find(|answer| 2 * heard.iter().filter(|other| other == answer).count() > heard.len());
    let answer = match (own, most) {
        (Some(_), Some(most)) if heard.len() > 1 => most.clone(),
        (Some(own), _) => own,
        (None, _) => alone,
    };
    Value::Record(vec![Value::Text("I add them.".into()), Value::Text(answer)])
}

/// Differences of the arms from the member without traits, by arm.
fn table(scenario: &Path, name: &str, reads: bool) -> BTreeMap<String, ContrastRow> {
    let folder = scratch(&format!("personality-{name}"));
    let simulation = Simulation::from_file(scenario).unwrap().set("model", "reader/one").unwrap();
    let answer = move |effect: &Effect, seed: u64| replied(reply(effect, seed, reads), "");
    let reader = Box::new(Scripted { name: "reader", answer });
    let sweep = simulation.provider(reader).out(folder.join("sweep")).sweep(None).unwrap();
    let rows = sweep.summary().unwrap().contrasts.iter().filter(|row| row.reference == "plain");
    let rows: BTreeMap<String, ContrastRow> = rows.map(|row| (row.level.clone(), row.clone())).collect();
    for (arm, row) in &rows {
        println!("{name} {arm}: {:.4} [{:.4}, {:.4}]", row.difference.unwrap(), row.low.unwrap(), row.high.unwrap());
    }
    rows
}

/// The single members that differ from the one without traits, with the sign of the difference. Student's quantile for ten comparisons
/// (Bonferroni) and 20 seeds is 1.52 times that for one, so a difference counts if it is 1.52 times the half width of its interval.
fn found(table: &BTreeMap<String, ContrastRow>) -> BTreeMap<&str, f64> {
    let differs = |arm: &'static str| {
        let row = &table[arm];
        let (difference, half) = (row.difference?, (row.high? - row.low?) / 2.0);
        (difference.abs() > 1.52 * half).then(|| (arm, difference.signum()))
    };
    SINGLES.into_iter().filter_map(differs).collect()
}

fn shipped(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/power-of-personality").join(file)
}

#[test]
fn planted_effects_on_closed_tasks_are_found_and_no_others() {
    let table = table(&shipped("closed.yaml"), "closed", true);
    assert_eq!(found(&table), BTreeMap::from(CLOSED));
    // The size of an effect is that of the slips: an interval holds it.
    for (arm, size) in [("conscientious", 0.15), ("careless", -0.15), ("nervous", -0.12)] {
        let row = &table[arm];
        assert!(row.low.unwrap() < size && size < row.high.unwrap(), "{row:?}");
    }
    // Of three that debate, most are right more often than one.
    for team in ["team-plain", "team-conscientious", "team-mixed"] {
        assert!(table[team].low.unwrap() > 0.0, "{:?}", table[team]);
    }
    assert!(table["team-conscientious"].difference > table["team-mixed"].difference);
}

#[test]
fn planted_effects_on_open_tasks_are_found_and_no_others() {
    let table = table(&shipped("open.yaml"), "open", true);
    assert_eq!(found(&table), BTreeMap::from(OPEN));
    // Three members have more ideas than one, and the open ones most.
    let of = |arm: &str| table[arm].difference.unwrap();
    assert!(
        of("team-plain") > 0.0 && of("team-open") > of("team-mixed") && of("team-mixed") > of("team-conscientious")
    );
}

#[test]
fn effects_go_with_the_traits_and_not_with_the_names_of_arms() {
    // Each arm gets the traits of the next one.
    let folder = scratch("personality-shuffled-file");
    let text = std::fs::read_to_string(shipped("closed.yaml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("    open:")).unwrap();
    let team = |n: usize| lines[first + n % SINGLES.len()].split_once(": ").unwrap().1;
    let mut shuffled: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for (n, arm) in SINGLES.iter().enumerate() {
        assert!(lines[first + n].starts_with(&format!("    {arm}: ")));
        shuffled[first + n] = format!("    {arm}: {}", team(n + 1));
    }
    std::fs::write(folder.join("closed.yaml"), shuffled.join("\n")).unwrap();
    std::fs::copy(shipped("sums.jsonl"), folder.join("sums.jsonl")).unwrap();
    let before =
        |arm: &str| SINGLES[(SINGLES.iter().position(|it| *it == arm).unwrap() + SINGLES.len() - 1) % SINGLES.len()];
    let expected: BTreeMap<&str, f64> = CLOSED.into_iter().map(|(arm, sign)| (before(arm), sign)).collect();
    assert_eq!(found(&table(&folder.join("closed.yaml"), "shuffled", true)), expected);
    // A model that does not read them shows no effect.
    assert_eq!(found(&table(&shipped("closed.yaml"), "unread", false)), BTreeMap::new());
}
