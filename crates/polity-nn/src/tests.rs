//! Gradients against finite differences, products against plain ones, weights for any number of threads.

use crate::*;
use polity_base::rng::{Draws, Stream};

fn draws(n: u32) -> Draws {
    Draws::new(7, Stream::Cohort, 0, n)
}

fn random(rows: usize, columns: usize, draws: &mut Draws) -> Array {
    Array::new(rows, columns, (0..rows * columns).map(|_| draws.normal() as f32).collect())
}

#[test]
fn products_are_plain_sums_in_order() {
    let mut draws = draws(0);
    for [m, k, n] in [[1, 1, 1], [4, 3, 16], [5, 7, 17], [9, 64, 33], [2, 0, 3], [64, 4, 2]] {
        let (a, b, c) = (random(m, k, &mut draws), random(k, n, &mut draws), random(m, n, &mut draws));
        let plain = |a: &Array, b: &Array| {
            let mut out = Array::zeros(a.rows(), b.columns());
            for i in 0..a.rows() {
                for j in 0..b.columns() {
                    let mut sum = 0.0f32;
                    (0..b.rows()).for_each(|k| sum += a.row(i)[k] * b.row(k)[j]);
                    out.data_mut()[i * b.columns() + j] = sum;
                }
            }
            out
        };
        assert_eq!(a.times(&b, None), plain(&a, &b), "{m} {k} {n}: every bit");
        assert_eq!(a.transposed_times(&c), plain(&a.transposed(), &c), "{m} {k} {n}: every bit");
    }
}

#[test]
fn the_hyperbolic_tangent_is_close_and_keeps_what_is_no_number() {
    let worst = (-2000..=2000).map(|i| i as f32 / 100.0).map(|x| {
        let y = array::tanh(x);
        assert!(y.abs() <= 1.0, "{x}: {y}");
        (f64::from(y) - libm::tanh(f64::from(x))).abs()
    });
    let worst = worst.fold(0.0, f64::max);
    assert!(worst < 4e-7, "{worst}");
    assert!(array::tanh(f32::NAN).is_nan());
}

/// Checks gradients of a loss against differences of it.
fn check(weights: &Weights, loss: impl Fn(&mut Tape<'_>) -> Var + Sync) {
    let value = |weights: &Weights| {
        let mut tape = Tape::new(weights);
        let var = loss(&mut tape);
        f64::from(tape.value(var).data()[0])
    };
    let mut tape = Tape::new(weights);
    let var = loss(&mut tape);
    let found = tape.backward(var);
    let step = 2e-3f32;
    for (i, tensor) in weights.iter().enumerate() {
        for j in 0..tensor.array.data().len() {
            let moved = |by: f32| {
                let mut moved = weights.clone();
                let array = moved.arrays_mut().nth(i).unwrap();
                array.data_mut()[j] += by;
                value(&moved)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            let got = f64::from(found[i].data()[j]);
            assert!((slope - got).abs() < 2e-2 * slope.abs().max(1.0), "{} {j}: {got}, not {slope}", tensor.name);
        }
    }
}

#[test]
fn gradients_of_a_policy_loss_are_slopes() {
    let mut draws = draws(1);
    let mut weights = Weights::default();
    let policy = Mlp::new(&mut weights, "policy", &[3, 5, 4], Activation::Tanh, 1.0, &mut draws);
    let value = Mlp::new(&mut weights, "value", &[3, 5, 1], Activation::Relu, 1.0, &mut draws);
    let (x, old, goals) = (random(6, 3, &mut draws), random(6, 1, &mut draws), random(6, 1, &mut draws));
    let mask = Array::new(6, 4, (0..24).map(|i| if i % 7 == 3 { -1e9 } else { 0.0 }).collect());
    check(&weights, |tape| {
        let x = tape.input(x.clone());
        let (logits, mask) = (policy.on(tape, x), tape.input(mask.clone()));
        let logits = tape.add(logits, mask);
        let logs = tape.log_softmax(logits);
        let p = tape.exp(logs);
        let product = tape.multiply(p, logs);
        let entropy = tape.row_sums(product);
        let log = tape.pick(logs, vec![0, 1, 2, 0, 1, 0]);
        let old = tape.input(old.clone());
        let ratio = tape.subtract(log, old);
        let ratio = tape.exp(ratio);
        let clipped = tape.clamp(ratio, 0.8, 1.2);
        let worst = tape.least(ratio, clipped);
        let best = tape.most(ratio, entropy);
        let (v, goals) = (value.on(tape, x), tape.input(goals.clone()));
        let error = tape.subtract(v, goals);
        let square = tape.square(error);
        let square = tape.scale(square, 0.5);
        let sum = [entropy, worst, best].into_iter().fold(square, |sum, term| tape.add(sum, term));
        tape.sum(sum)
    });
}

#[test]
fn gradients_through_time_are_slopes() {
    let mut draws = draws(2);
    let mut weights = Weights::default();
    let gru = Gru::new(&mut weights, "gru", [2, 3], &mut draws);
    let steps: Vec<Array> = (0..4).map(|_| random(5, 2, &mut draws)).collect();
    check(&weights, |tape| {
        let mut state = tape.input(Array::zeros(5, 3));
        for step in &steps {
            let x = tape.input(step.clone());
            state = gru.on(tape, x, state);
        }
        let square = tape.square(state);
        tape.sum(square)
    });
}

#[test]
fn gradients_of_steps_of_sequences_are_slopes() {
    let mut draws = draws(6);
    let mut weights = Weights::default();
    let gru = Gru::new(&mut weights, "gru", [2, 3], &mut draws);
    let head = Mlp::new(&mut weights, "head", &[3, 2], Activation::Tanh, 1.0, &mut draws);
    let steps: Vec<Array> = (0..3).map(|_| random(4, 2, &mut draws)).collect();
    check(&weights, |tape| {
        let mut state = tape.input(Array::zeros(4, 3));
        let mut states = Vec::new();
        for step in &steps {
            let x = tape.input(step.clone());
            state = gru.on(tape, x, state);
            states.push(state);
        }
        let all = tape.stack(&states);
        // Some steps are left out, and one counts twice.
        let some = tape.rows(all, vec![11, 0, 5, 5, 7]);
        let y = head.on(tape, some);
        let square = tape.square(y);
        tape.sum(square)
    });
}

#[test]
fn gradients_of_a_mixer_are_slopes() {
    let mut draws = draws(4);
    let mut weights = Weights::default();
    let q = Mlp::new(&mut weights, "q", &[2, 4, 1], Activation::Tanh, 1.0, &mut draws);
    let first = Mlp::new(&mut weights, "first", &[6, 6], Activation::Relu, 1.0, &mut draws);
    let second = Mlp::new(&mut weights, "second", &[6, 2], Activation::Relu, 1.0, &mut draws);
    // Three members of five teams.
    let x = random(15, 2, &mut draws);
    check(&weights, |tape| {
        let state = tape.input(Array::new(5, 6, x.data().to_vec()));
        let x = tape.input(x.clone());
        let q = q.on(tape, x);
        let q = tape.reshape(q, 3);
        let (w, v) = (first.on(tape, state), second.on(tape, state));
        let w = tape.abs(w);
        let units = tape.row_times(q, w);
        let units = tape.elu(units);
        let units = tape.softplus(units);
        let both = tape.join(&[units, v, q]);
        let square = tape.square(both);
        tape.sum(square)
    });
}

#[test]
fn frozen_networks_pass_gradients_on_and_get_none() {
    let mut draws = draws(5);
    let mut weights = Weights::default();
    let actor = Mlp::new(&mut weights, "actor", &[2, 3], Activation::Tanh, 1.0, &mut draws);
    let from = weights.len();
    let critic = Mlp::new(&mut weights, "critic", &[3, 4, 1], Activation::Tanh, 1.0, &mut draws);
    let x = random(6, 2, &mut draws);
    let loss = |tape: &mut Tape<'_>, frozen: bool| {
        let x = tape.input(x.clone());
        let y = actor.on(tape, x);
        let value = if frozen { critic.frozen_on(tape, y) } else { critic.on(tape, y) };
        tape.sum(value)
    };
    let of = |frozen: bool| {
        let mut tape = Tape::new(&weights);
        let loss = loss(&mut tape, frozen);
        tape.backward(loss)
    };
    let (free, held) = (of(false), of(true));
    assert_eq!(free[..from], held[..from]);
    assert!(free[from..].iter().any(|of| of.data().iter().any(|x| *x != 0.0)));
    assert!(held[from..].iter().all(|of| of.data().iter().all(|x| *x == 0.0)));
}

/// Trains a network on a function for some steps, with this number of threads.
fn trained(threads: usize) -> (Weights, [f64; 2]) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut draws = draws(3);
    let mut weights = Weights::default();
    let net = Mlp::new(&mut weights, "net", &[2, 32, 1], Activation::Tanh, 1.0, &mut draws);
    let x = random(300, 2, &mut draws);
    let goals = Array::column((0..300).map(|row| x.row(row)[0] * x.row(row)[1]).collect());
    let mut adam = Adam::new(&weights);
    let mut losses = [0.0; 2];
    for step in 0..300 {
        let rows = |range: std::ops::Range<usize>| range.map(|row| row as u32).collect::<Vec<u32>>();
        let mut gradients = pool
            .install(|| {
                gradients(&weights, 300, ["loss"], |tape, range| {
                    let (x, goals) = (x.pick(&rows(range.clone())), goals.pick(&rows(range)));
                    let (x, goals) = (tape.input(x), tape.input(goals));
                    let y = net.on(tape, x);
                    let error = tape.subtract(y, goals);
                    let square = tape.square(error);
                    let square = tape.scale(square, 1.0 / 300.0);
                    [tape.sum(square)]
                })
            })
            .unwrap();
        clip(&mut gradients.of, 0.5);
        adam.step(&mut weights, &gradients.of, 0.01);
        losses[usize::from(step > 0)] = gradients.losses[0];
    }
    (weights, losses)
}

#[test]
fn training_learns_and_gives_the_same_bits_for_any_number_of_threads() {
    let (weights, [first, last]) = trained(1);
    assert!(last < first / 20.0, "{first} to {last}");
    for threads in [2, 3, 5] {
        assert_eq!(trained(threads).0.digest(), weights.digest(), "{threads} threads");
    }
}

#[test]
fn layers_begin_orthogonal() {
    let mut weights = Weights::default();
    Dense::new(&mut weights, "layer", [6, 4], 2.0, &mut draws(4));
    let w = &weights[0].array;
    let product = w.transposed_times(w);
    for i in 0..4 {
        for j in 0..4 {
            let expected = if i == j { 4.0 } else { 0.0 };
            assert!((product.row(i)[j] - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn a_loss_that_is_no_number_is_named() {
    let mut weights = Weights::default();
    let layer = Dense::new(&mut weights, "layer", [1, 1], 1.0, &mut draws(5));
    let loss = |weights: &Weights, x: f32| {
        gradients(weights, 3, ["value loss"], |tape, range| {
            let x = tape.input(Array::column(vec![x; range.len()]));
            let y = layer.on(tape, x);
            [tape.sum(y)]
        })
    };
    assert!(loss(&weights, 1.0).is_ok());
    assert_eq!(loss(&weights, f32::NAN).unwrap_err().to_string(), "`value loss` is not a finite number");
    weights.arrays_mut().nth(1).unwrap().data_mut()[0] = f32::INFINITY;
    assert_eq!(loss(&weights, 1.0).unwrap_err().to_string(), "`layer.bias` is not a finite number");
}

#[test]
fn files_hold_the_same_weights_and_wrong_ones_are_refused() {
    let (weights, _) = trained(1);
    let bytes = write(&weights, "about").unwrap();
    let (found, about) = read(&bytes).unwrap();
    assert_eq!(about.as_deref(), Some("about"));
    let mut fresh = Weights::default();
    Mlp::new(&mut fresh, "net", &[2, 32, 1], Activation::Tanh, 1.0, &mut draws(9));
    fresh.take(&found).unwrap();
    assert_eq!(fresh, weights);
    let mut other = Weights::default();
    Mlp::new(&mut other, "net", &[3, 32, 1], Activation::Tanh, 1.0, &mut draws(9));
    let refused = other.take(&found).unwrap_err().to_string();
    assert_eq!(refused, "`net.0.weight` is 2 by 32, and must be 3 by 32");
    let mut other = Weights::default();
    Mlp::new(&mut other, "wide", &[2, 32, 1], Activation::Tanh, 1.0, &mut draws(9));
    assert!(other.take(&found).unwrap_err().to_string().starts_with("the weights have no `wide.0.weight` (2 by 32)"));
    for cut in [0, 7, 8, 100, bytes.len() - 1] {
        assert!(read(&bytes[..cut]).is_err(), "{cut}");
    }
}

/// `cargo test -p polity-nn --lib -- --ignored --nocapture speed`: the time of a step beside those of `shared/learning.md`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    for (hidden, batch) in [(64, 256), (64, 1024), (128, 1024)] {
        let mut draws = draws(6);
        let mut weights = Weights::default();
        let net = Mlp::new(&mut weights, "net", &[16, hidden, hidden, 8], Activation::Tanh, 1.0, &mut draws);
        let x = random(batch, 16, &mut draws);
        let mut adam = Adam::new(&weights);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut times: Vec<u128> = (0..200)
            .map(|_| {
                let start = std::time::Instant::now();
                pool.install(|| {
                    let mut found = gradients(&weights, batch, ["loss"], |tape, range| {
                        let x = tape.input(x.pick(&range.map(|row| row as u32).collect::<Vec<_>>()));
                        let y = net.on(tape, x);
                        let square = tape.square(y);
                        [tape.sum(square)]
                    })
                    .unwrap();
                    clip(&mut found.of, 0.5);
                    adam.step(&mut weights, &found.of, 1e-3);
                });
                start.elapsed().as_micros()
            })
            .collect();
        times.sort();
        println!("MLP {hidden}, batch {batch}: {} µs (median), {} µs (least)", times[100], times[0]);
    }
}

#[test]
fn experts_serve_the_rows_that_choose_them() {
    let mut draws = draws(8);
    let mut weights = Weights::default();
    let experts = Experts::new(&mut weights, "experts", &[3, 5, 2], [4, 2], Activation::Tanh, &mut draws);
    let x = random(6, 3, &mut draws);
    let gates = |weights: &Weights| {
        let mut tape = Tape::new(weights);
        let x = tape.input(x.clone());
        let gates = experts.gates(&mut tape, x);
        tape.value(gates).clone()
    };
    let served = experts.served(&gates(&weights), None);
    assert!((0..6).all(|row| served.row(row).iter().sum::<f32>() == 2.0));
    check(&weights, |tape| {
        let x = tape.input(x.clone());
        let gates = experts.gates(tape, x);
        let y = experts.on(tape, x, gates, served.clone());
        let square = tape.square(y);
        tape.sum(square)
    });
    // Three rows want the first expert most; the second choices are 1, 2, 1.
    let gates = Array::new(3, 3, vec![-0.1, -1.0, -2.0, -0.1, -2.0, -1.0, -0.1, -1.0, -3.0]);
    let experts =
        |chosen| Experts::new(&mut Weights::default(), "e", &[1, 1], [3, chosen], Activation::Tanh, &mut draws.clone());
    assert_eq!(experts(1).served(&gates, Some(2)).data(), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(experts(2).served(&gates, Some(1)).data(), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn soft_experts_see_means_of_tokens() {
    let mut draws = draws(10);
    let mut weights = Weights::default();
    let experts = SoftExperts::new(&mut weights, "soft", &[3, 2], 2, Activation::Tanh, &mut draws);
    let tokens: Vec<Array> = (0..3).map(|_| random(4, 3, &mut draws)).collect();
    let on = |tape: &mut Tape<'_>| {
        let tokens: Vec<Var> = tokens.iter().map(|token| tape.input(token.clone())).collect();
        experts.on(tape, &tokens)
    };
    check(&weights, |tape| {
        let made = on(tape);
        let made = tape.join(&made);
        let square = tape.square(made);
        tape.sum(square)
    });
    // The same in plain sums.
    let mut tape = Tape::new(&weights);
    let made = on(&mut tape);
    let dense = |name: &str, row: &[f64]| -> Vec<f64> {
        let of = |part: &str| &weights.iter().find(|of| of.name == format!("soft.{name}.{part}")).unwrap().array;
        let (w, b) = (of("weight"), of("bias"));
        let term = |to: usize| (0..row.len()).map(|i| row[i] * f64::from(w.row(i)[to])).sum::<f64>();
        (0..w.columns()).map(|to| f64::from(b.row(0)[to]) + term(to)).collect()
    };
    let mean = |logits: &[f64], of: &[Vec<f64>]| -> Vec<f64> {
        let shares: Vec<f64> = logits.iter().map(|logit| libm::exp(*logit)).collect();
        let sum: f64 = shares.iter().sum();
        (0..of[0].len()).map(|i| shares.iter().zip(of).map(|(share, of)| share * of[i]).sum::<f64>() / sum).collect()
    };
    for row in 0..4 {
        let seen: Vec<Vec<f64>> =
            tokens.iter().map(|token| token.row(row).iter().map(|x| f64::from(*x)).collect()).collect();
        let fits: Vec<Vec<f64>> = seen.iter().map(|token| dense("fit", token)).collect();
        let expert = |i: usize| {
            let own: Vec<f64> = fits.iter().map(|fits| fits[i]).collect();
            dense(&format!("{i}.0"), &mean(&own, &seen))
        };
        let said = [expert(0), expert(1)];
        for (token, made) in made.iter().enumerate() {
            for (i, expected) in mean(&fits[token], &said).into_iter().enumerate() {
                let found = f64::from(tape.value(*made).row(row)[i]);
                assert!((found - expected).abs() < 1e-5, "{row} {token} {i}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn gradients_of_attention_are_slopes_and_closed_entities_say_nothing() {
    let mut draws = draws(9);
    let mut weights = Weights::default();
    let attention = Attention::new(&mut weights, "attention", [3, 2, 2], 2, &mut draws);
    let x = random(4, 3, &mut draws);
    let entities: Vec<Array> = (0..3).map(|_| random(4, 2, &mut draws)).collect();
    let open = Array::new(4, 3, vec![1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    check(&weights, |tape| {
        let (x, open) = (tape.input(x.clone()), tape.input(open.clone()));
        let entities: Vec<Var> = entities.iter().map(|of| tape.input(of.clone())).collect();
        let y = attention.on(tape, x, &entities, open);
        let square = tape.square(y);
        tape.sum(square)
    });
    // The same in plain sums.
    let mut tape = Tape::new(&weights);
    let vars: Vec<Var> = entities.iter().map(|of| tape.input(of.clone())).collect();
    let (query, mask) = (tape.input(x.clone()), tape.input(open.clone()));
    let y = attention.on(&mut tape, query, &vars, mask);
    let dense = |name: &str, row: &[f32]| -> Vec<f64> {
        let of = |part: &str| &weights.iter().find(|of| of.name == format!("attention.{name}.{part}")).unwrap().array;
        let (w, b) = (of("weight"), of("bias"));
        let term = |to: usize| (0..row.len()).map(|i| f64::from(row[i]) * f64::from(w.row(i)[to])).sum::<f64>();
        (0..w.columns()).map(|to| f64::from(b.row(0)[to]) + term(to)).collect()
    };
    for row in 0..4 {
        let query = dense("query", x.row(row));
        for head in 0..2 {
            let of = |numbers: &[f64], i: usize| numbers[2 * head + i];
            let mut sums = [0.0; 3];
            for k in (0..3).filter(|k| open.row(row)[*k] > 0.0) {
                let (key, value) = (dense("key", entities[k].row(row)), dense("value", entities[k].row(row)));
                let score: f64 = (0..2).map(|i| of(&query, i) * of(&key, i)).sum();
                let weight = libm::exp(score / libm::sqrt(2.0));
                sums = [sums[0] + weight, sums[1] + weight * of(&value, 0), sums[2] + weight * of(&value, 1)];
            }
            for i in 0..2 {
                let expected = if sums[0] > 0.0 { sums[1 + i] / sums[0] } else { 0.0 };
                let found = f64::from(tape.value(y).row(row)[2 * head + i]);
                assert!((found - expected).abs() < 1e-5, "{row} {head} {i}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn gradients_of_powers_are_slopes_and_flow_through_replaced_numbers() {
    let mut draws = draws(10);
    let mut weights = Weights::default();
    let x = weights.push("x", random(3, 2, &mut draws).map(|x| 0.5 + x.abs()));
    check(&weights, |tape| {
        let x = tape.weight(x);
        let [one, two] = [-0.5, 1.5].map(|by| tape.power(x, by));
        let sum = tape.add(one, two);
        tape.sum(sum)
    });
    let mut tape = Tape::new(&weights);
    let var = tape.weight(x);
    let hard = Array::new(3, 2, vec![1.0; 6]);
    let y = tape.replaced(var, &hard);
    assert!(tape.value(y).data().iter().all(|y| (y - 1.0).abs() < 1e-6));
    let y = tape.scale(y, 3.0);
    let y = tape.sum(y);
    assert_eq!(tape.backward(y)[x].data(), [3.0; 6]);
}

#[test]
fn orthonormal_rows_are_so_and_have_slopes() {
    let mut draws = draws(11);
    let mut weights = Weights::default();
    let parts: Vec<usize> = (0..3).map(|i| weights.push(format!("{i}"), random(4, 5, &mut draws))).collect();
    let mut tape = Tape::new(&weights);
    let vars: Vec<Var> = parts.iter().map(|i| tape.weight(*i)).collect();
    let basis = orthonormal(&mut tape, &vars);
    for row in 0..4 {
        for (i, one) in basis.iter().enumerate() {
            for (j, other) in basis.iter().enumerate() {
                let [one, other] = [one, other].map(|of| tape.value(*of).row(row).to_vec());
                let dot: f32 = one.iter().zip(&other).map(|(x, y)| x * y).sum();
                assert!((dot - f32::from(u8::from(i == j))).abs() < 1e-5, "{row} {i} {j}: {dot}");
            }
        }
    }
    let weigh = random(4, 5, &mut draws);
    check(&weights, |tape| {
        let vars: Vec<Var> = parts.iter().map(|i| tape.weight(*i)).collect();
        let basis = orthonormal(tape, &vars);
        let terms: Vec<Var> = (0u8..)
            .zip(basis)
            .map(|(i, of)| {
                let weigh = tape.input(weigh.map(|x| f32::from(i + 1) * x));
                tape.multiply(of, weigh)
            })
            .collect();
        let sum = terms.into_iter().reduce(|sum, term| tape.add(sum, term)).unwrap();
        tape.sum(sum)
    });
}

#[test]
fn gradients_of_convolutions_are_slopes_and_patches_are_those_of_plain_sums() {
    let mut draws = draws(10);
    let mut weights = Weights::default();
    let first = Convolution::new(&mut weights, "first", [4, 5, 2], [2, 3], &mut draws);
    let second = Convolution::new(&mut weights, "second", first.size(), [3, 2], &mut draws);
    assert_eq!((first.size(), second.size()), ([3, 4, 3], [1, 2, 2]));
    let x = random(3, 4 * 5 * 2, &mut draws);
    let start = Mlp::new(&mut weights, "start", &[40, 40], Activation::Tanh, 1.0, &mut draws);
    check(&weights, |tape| {
        let x = tape.input(x.clone());
        let picture = start.on(tape, x);
        let made = first.on(tape, picture);
        let made = tape.tanh(made);
        let made = second.on(tape, made);
        let square = tape.square(made);
        tape.sum(square)
    });
    let mut tape = Tape::new(&weights);
    let input = tape.input(x.clone());
    let made = first.on(&mut tape, input);
    let filters = &weights.iter().find(|tensor| tensor.name == "first.weight").unwrap().array;
    for row in 0..3 {
        for (top, left, filter) in [(0, 0, 0), (2, 3, 1), (1, 2, 2)] {
            let mut expected = 0.0;
            for (i, (y, x_, channel)) in
                (0..2).flat_map(|y| (0..2).flat_map(move |x| (0..2).map(move |c| (y, x, c)))).enumerate()
            {
                let pixel = x.row(row)[((top + y) * 5 + left + x_) * 2 + channel];
                expected += f64::from(pixel) * f64::from(filters.row(i)[filter]);
            }
            let found = f64::from(tape.value(made).row(row)[(top * 4 + left) * 3 + filter]);
            assert!((found - expected).abs() < 1e-5, "{row} {top} {left} {filter}: {found}, not {expected}");
        }
    }
}
