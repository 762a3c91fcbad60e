//! A speaker knows where to go, a listener can go there. See README.md.

#[cfg(test)]
mod tests;

use crate::particles::{HasScene, Kind, Scene, declare_pushes, distance, named, pushes, seen_from, write_places};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<SpeakerListener>(files);
}

/// The seats, and the landmarks, which are as many as the words.
const SPEAKER: Seat = 0;
const LISTENER: Seat = 1;
const LANDMARKS: usize = 3;
/// What the listener is. Nobody touches anything.
const BODY: Kind = Kind { radius: 0.075, push: 5.0, top_speed: None };
/// The colours of the landmarks, which are what the speaker sees of the goal.
const DARK: f64 = 0.15;
const BRIGHT: f64 = 0.65;
/// The goal counts as reached within this distance.
const REACHED: f64 = 0.1;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Steps of an episode; 1 to 100,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { steps: 25 }
    }
}

/// A speaker and a listener.
pub struct SpeakerListener {
    steps: u32,
    goal: Vec<NumberSlot>,
    velocity: Vec<NumberSlot>,
    places: Vec<NumberSlot>,
    heard: Vec<NumberSlot>,
    landmarks: TableSlot,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Talk {
    /// Speaker, listener and landmarks.
    scene: Scene,
    /// The landmark to which the listener should go.
    goal: u8,
    /// The word that the speaker said in the last step, if any.
    said: Option<u8>,
}

impl HasScene for Talk {
    fn scene(&self) -> &Scene {
        &self.scene
    }
}

impl Talk {
    fn gap(&self) -> f64 {
        distance(self.scene.agents[LISTENER as usize].at, self.scene.landmarks[usize::from(self.goal)])
    }
}

impl Environment for SpeakerListener {
    const NAME: &'static str = "speaker-listener";
    const SUMMARY: &'static str =
        "A speaker tells a listener where to go (simple_speaker_listener of the multi-agent particle environments)";
    type Params = Params;
    type State = Talk;

    fn open(
        Params { steps }: Params,
        _: &WorldSetup<'_>,
        declare: &mut DeclareEnvironment<Self>,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=100_000, "steps", steps)?;
        let mut slots = |names: Vec<String>, doc: &'static str| -> Vec<NumberSlot> {
            names.into_iter().map(|name| declare.number_slot(name, doc)).collect()
        };
        let goal = slots(
            ["red", "green", "blue"].map(|colour| format!("goal-{colour}")).into(),
            "for the speaker: the colour of the goal",
        );
        let velocity = slots(vec!["velocity-x".into(), "velocity-y".into()], "for the listener: its velocity");
        let places = (0..LANDMARKS).flat_map(|i| [named("landmark", i, 0), named("landmark", i, 1)]).collect();
        let places = slots(places, "for the listener: where a landmark is, as seen from it");
        let heard = (0..LANDMARKS).map(|i| format!("heard-{i}")).collect();
        let heard = slots(heard, "for the listener: 1 if this was the speaker's last word");
        declare.number("speaks", "1 for the speaker, 0 for the listener", |_, _, seat| {
            f64::from(u8::from(*seat == SPEAKER))
        });
        let doc = "for the listener: all landmarks (red, green, blue), as seen from it";
        let landmarks = declare.table_slot("landmarks", ["x", "y"], doc);
        for word in 0..LANDMARKS {
            declare.action(format!("say-{word}"), ActionArgument::Nothing, format!("say the word {word}"));
        }
        declare_pushes(declare);
        declare.scalar("gap", "distance of the listener to the goal", |_, talk: &Talk| talk.gap());
        declare.scalar("reached", "1 if the listener is nearer than 0.1 to the goal", |_, talk: &Talk| {
            f64::from(u8::from(talk.gap() < REACHED))
        });
        Ok(SpeakerListener { steps, goal, velocity, places, heard, landmarks })
    }

    fn seats(&self) -> u32 {
        2
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Talk {
        let goal = draws.below(LANDMARKS as u64) as u8;
        Talk { scene: Scene::scatter(2, LANDMARKS, 1.0, draws), goal, said: None }
    }

    fn accepts(&self, talk: &Talk) -> Result<(), String> {
        let known = |number: u8| usize::from(number) < LANDMARKS;
        match known(talk.goal) && talk.said.is_none_or(known) {
            true => talk.scene.fits(2, LANDMARKS),
            false => Err(format!("goal and word are less than {LANDMARKS}")),
        }
    }

    fn cut(&self, _: &Talk) -> bool {
        true
    }

    fn offers(&self, _: &Talk, seat: Seat, action: u16) -> bool {
        (seat == SPEAKER) == (usize::from(action) < LANDMARKS)
    }

    fn observe(&self, talk: &Talk, seat: Seat, observation: &mut ObservationRow<'_>) {
        if seat == SPEAKER {
            for (i, slot) in self.goal.iter().enumerate() {
                observation.number(*slot, if i == usize::from(talk.goal) { BRIGHT } else { DARK });
            }
            return;
        }
        let scene = &talk.scene;
        let own = scene.agents[seat as usize];
        for (slot, velocity) in self.velocity.iter().zip(own.velocity) {
            observation.number(*slot, velocity);
        }
        let places = scene.landmarks.iter().flat_map(|mark| seen_from(own.at, *mark));
        self.places.iter().zip(places).for_each(|(slot, along)| observation.number(*slot, along));
        for (word, slot) in (0u8..).zip(&self.heard) {
            observation.number(*slot, f64::from(u8::from(talk.said == Some(word))));
        }
        write_places(self.landmarks, scene, seat, scene.landmarks.iter().copied(), observation);
    }

    /// The listener hears in the next step what the speaker says in this one: nothing, without a word. Without a push it does not push.
    fn step(&self, talk: &mut Talk, moves: &[Move], _: &mut Draws) -> StepResult {
        talk.said = moves.iter().find(|made| made.seat == SPEAKER).map(|made| made.action as u8);
        let pushes = pushes(moves, 2, LANDMARKS as u16, |_| BODY);
        // The speaker stays where it is, and bodies pass through each other.
        let mut listener = Scene { agents: vec![talk.scene.agents[LISTENER as usize]], ..Scene::default() };
        listener.step(&pushes[1..], |_| BODY, None);
        talk.scene.agents[LISTENER as usize] = listener.agents[0];
        talk.scene.steps += 1;
        let [dx, dy] = seen_from(talk.scene.agents[LISTENER as usize].at, talk.scene.landmarks[usize::from(talk.goal)]);
        StepResult {
            rewards: vec![-(dx * dx + dy * dy); 2],
            results: vec![String::new(); moves.len()],
            done: talk.scene.steps >= self.steps,
        }
    }
}
