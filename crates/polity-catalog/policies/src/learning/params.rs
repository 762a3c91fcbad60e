//! Parameters that learners share: groups of keys, of which each learner takes those that it has.

use super::{Keys, Schedule};
use polity_kernel::Invalid;

/// The parameters of a learner, as the macro `params!` declares them.
pub trait LearnerParams {
    /// Returns the keys that all learners have.
    fn keys(&self) -> Keys<'_>;

    /// Returns when it learns from what is remembered.
    fn schedule(&self) -> Schedule;

    /// Checks that every number of the shared groups is in its range.
    ///
    /// # Errors
    /// The first key whose value is not.
    fn check_shared(&self) -> Result<(), Invalid>;
}

/// How often a learner decides at random: a probability that falls evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploration {
    /// At the start.
    pub start: f64,
    /// In the end.
    pub end: f64,
    /// Rounds until then.
    pub rounds: u32,
}

impl Exploration {
    /// Returns the probability in a round.
    #[must_use]
    pub fn at(self, round: u32) -> f64 {
        let part = (f64::from(round) / f64::from(self.rounds.max(1))).min(1.0);
        self.start + part * (self.end - self.start)
    }
}

/// Declares `Params` of a learner from groups of keys with their defaults, in this order; all but `all` and `own` may be left out:
///
/// ```text
/// params! {
///     /// About the learner.
///     all { hidden: vec![64], activation: Activation::Tanh }
///     own {
///         /// What the key means.
///         key: f64 = 0.5,
///     }
///     clipped { horizon: 128, epochs: 4, minibatch: 256, anneal: false, lambda: 0.95, clip: 0.2, value_weight: 0.5, entropy_weight: 0.0 }
///     returns { discount: 0.99, reward_scale: 1.0 }                                    // reward_scale may be left out
///     replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 128 }
///     online { learning_starts: 50, train_every: 1 }
///     hard_target { target_update: 250 }                                                    // or: soft_target { tau: 0.01 }
///     exploration { epsilon_start: 1.0, epsilon_end: 0.05, epsilon_rounds: 500 }
///     adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
/// }
/// ```
///
/// `params! { for <M> ... }` makes `Params<M>`, whose own keys may be of the type `M`.
macro_rules! params {
    (
        $(for <$kind:ident>)?
        $(#[$about:meta])*
        all { hidden: $layers:expr, activation: $function:expr }
        own { $($(#[$meaning:meta])* $own:ident: $type:ty = $default:expr,)* }
        $(clipped {
            $horizon:ident: $waits:expr, $epochs:ident: $times:expr, $batch:ident: $decisions:expr, $anneal:ident: $falls:expr,
            $lambda:ident: $later:expr, $clip:ident: $far:expr, $value_weight:ident: $value:expr,
            $entropy_weight:ident: $entropy:expr
        })?
        $(returns { $discount:ident: $gamma:expr $(, $reward_scale:ident: $scale:expr)? })?
        $(replay { $buffer_rounds:ident: $buffer:expr, $gradient_steps:ident: $steps:expr, $minibatch:ident: $size:expr })?
        $(online { $learning_starts:ident: $starts:expr, $train_every:ident: $every:expr })?
        $(hard_target { $target_update:ident: $period:expr })?
        $(soft_target { $tau:ident: $part:expr })?
        $(exploration {
            $epsilon_start:ident: $from:expr, $epsilon_end:ident: $to:expr, $epsilon_rounds:ident: $rounds:expr
        })?
        $(adam { $learning_rate:ident: $rate:expr, $max_grad_norm:ident: $norm:expr })?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Params $(<$kind: Default>)? {
            /// Numbers that the world shows and that the networks see. Default: all, except those about turns and rewards. Learners that
            /// put agents of an episode together also see the agent's seat.
            pub observe: Option<Vec<String>>,
            /// The number that shows the reward of the last round; or several numbers with their weights, as a utility of several objectives.
            pub reward: $crate::learning::RewardSource,
            /// The number that is 1 when the last round ended the agent's episode. Default: `episode-ended`, which every environment shows.
            /// Another one is for episodes within a longer game.
            pub ended: Option<String>,
            /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
            pub hidden: Vec<usize>,
            /// The function after each hidden layer.
            pub activation: polity_nn::Activation,
            $($(#[$meaning])* pub $own: $type,)*
            $(
                /// Rounds between updates (horizon T).
                pub $horizon: u32,
                /// How often an update goes over its decisions (epochs K).
                pub $epochs: u32,
                /// Decisions in a step of the optimiser (minibatch size M).
                pub $batch: u32,
                /// Whether the step size falls to 0 towards the end of the run.
                pub $anneal: bool,
                /// Weight of later surprises in an advantage (λ); 0 to 1.
                pub $lambda: f64,
                /// How far the probability of a decision may move in an update, as a part of it (ε); above 0.
                pub $clip: f64,
                /// Weight of the error of the value in the loss (c1).
                pub $value_weight: f64,
                /// Weight of the entropy in the loss (c2).
                pub $entropy_weight: f64,
            )?
            $(
                /// What a reward is worth one decision later (discount γ); 0 to 1.
                pub $discount: f64,
                $(
                    /// Factor of rewards in learning; above 0. Values of about 1 are learned fastest.
                    pub $reward_scale: f64,
                )?
            )?
            $(
                /// Rounds that are remembered, of all agents.
                pub $buffer_rounds: u32,
                /// Steps of the optimiser in an update.
                pub $gradient_steps: u32,
                /// Decisions in a step of the optimiser; rounds of teams, if the values of a team are mixed.
                pub $minibatch: u32,
            )?
            $(
                /// The round before which nothing is learned.
                pub $learning_starts: u32,
                /// Rounds from one update to the next.
                pub $train_every: u32,
            )?
            $(
                /// Steps of the optimiser between two copies of the network to the target network.
                pub $target_update: u32,
            )?
            $(
                /// How far the target networks move towards the others after each step of the optimiser, as a part of the difference (τ);
                /// above 0, at most 1.
                pub $tau: f64,
            )?
            $(
                /// Probability with which a decision is drawn at random (ε) at the start; 0 to 1.
                pub $epsilon_start: f64,
                /// What that probability falls to; 0 to 1.
                pub $epsilon_end: f64,
                /// Rounds until it has fallen.
                pub $epsilon_rounds: u32,
            )?
            $(
                /// Step size of Adam.
                pub $learning_rate: f64,
                /// Maximum norm of a gradient; longer ones are scaled down.
                pub $max_grad_norm: f64,
            )?
            /// The round from which the agents neither explore nor learn. Default: never.
            pub stop: Option<u32>,
        }

        impl $(<$kind: Default>)? Default for Params $(<$kind>)? {
            fn default() -> Self {
                Params {
                    observe: None,
                    reward: $crate::learning::RewardSource::default(),
                    ended: None,
                    hidden: $layers,
                    activation: $function,
                    $($own: $default,)*
                    $(
                        $horizon: $waits,
                        $epochs: $times,
                        $batch: $decisions,
                        $anneal: $falls,
                        $lambda: $later,
                        $clip: $far,
                        $value_weight: $value,
                        $entropy_weight: $entropy,
                    )?
                    $($discount: $gamma, $($reward_scale: $scale,)?)?
                    $($buffer_rounds: $buffer, $gradient_steps: $steps, $minibatch: $size,)?
                    $($learning_starts: $starts, $train_every: $every,)?
                    $($target_update: $period,)?
                    $($tau: $part,)?
                    $($epsilon_start: $from, $epsilon_end: $to, $epsilon_rounds: $rounds,)?
                    $($learning_rate: $rate, $max_grad_norm: $norm,)?
                    stop: None,
                }
            }
        }

        impl $(<$kind: Default>)? Params $(<$kind>)? {
            $(
                /// Returns how often it decides at random.
                pub fn exploration(&self) -> $crate::learning::Exploration {
                    $crate::learning::Exploration {
                        start: self.$epsilon_start,
                        end: self.$epsilon_end,
                        rounds: self.$epsilon_rounds,
                    }
                }
            )?
        }

        impl $(<$kind: Default>)? $crate::learning::LearnerParams for Params $(<$kind>)? {
            fn keys(&self) -> $crate::learning::Keys<'_> {
                $crate::learning::Keys {
                    observe: self.observe.as_deref(),
                    reward: &self.reward,
                    ended: self.ended.as_deref(),
                    hidden: &self.hidden,
                    activation: self.activation,
                    stop: self.stop,
                }
            }

            fn schedule(&self) -> $crate::learning::Schedule {
                let schedule = $crate::learning::Schedule::default();
                $(let schedule = $crate::learning::Schedule { steps: self.$gradient_steps, ..schedule };)?
                $(let schedule = $crate::learning::Schedule {
                    starts: self.$learning_starts,
                    every: self.$train_every,
                    ..schedule
                };)?
                $(let schedule = $crate::learning::Schedule {
                    refresh: $crate::learning::Refresh::Every(self.$target_update),
                    ..schedule
                };)?
                $(let schedule = $crate::learning::Schedule {
                    refresh: $crate::learning::Refresh::Towards(self.$tau),
                    ..schedule
                };)?
                schedule
            }

            fn check_shared(&self) -> Result<(), polity_kernel::Invalid> {
                $(
                    $crate::learning::check_counts(&[
                        (stringify!($horizon), self.$horizon),
                        (stringify!($epochs), self.$epochs),
                        (stringify!($batch), self.$batch),
                    ])?;
                    $crate::learning::check_shares(&[(stringify!($lambda), self.$lambda)])?;
                    $crate::learning::check_positive(&[(stringify!($clip), self.$clip)])?;
                    $crate::learning::check_weights(&[
                        (stringify!($value_weight), self.$value_weight),
                        (stringify!($entropy_weight), self.$entropy_weight),
                    ])?;
                )?
                $(
                    $crate::learning::check_shares(&[(stringify!($discount), self.$discount)])?;
                    $($crate::learning::check_positive(&[(stringify!($reward_scale), self.$reward_scale)])?;)?
                )?
                $(
                    polity_kernel::Invalid::within(2..=1_000_000, stringify!($buffer_rounds), self.$buffer_rounds)?;
                    $crate::learning::check_counts(&[
                        (stringify!($gradient_steps), self.$gradient_steps),
                        (stringify!($minibatch), self.$minibatch),
                    ])?;
                )?
                $($crate::learning::check_counts(&[(stringify!($train_every), self.$train_every)])?;)?
                $($crate::learning::check_counts(&[(stringify!($target_update), self.$target_update)])?;)?
                $(
                    $crate::learning::check_shares(&[(stringify!($tau), self.$tau)])?;
                    $crate::learning::check_positive(&[(stringify!($tau), self.$tau)])?;
                )?
                $($crate::learning::check_shares(&[
                    (stringify!($epsilon_start), self.$epsilon_start),
                    (stringify!($epsilon_end), self.$epsilon_end),
                ])?;)?
                $($crate::learning::check_positive(&[
                    (stringify!($learning_rate), self.$learning_rate),
                    (stringify!($max_grad_norm), self.$max_grad_norm),
                ])?;)?
                Ok(())
            }
        }
    };
}
pub(crate) use params;
