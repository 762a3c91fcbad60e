//! The page as a whole: well formed, harmless, self-contained, the same every time.

use super::*;

fn text(words: &str) -> String {
    words.to_owned()
}

fn facts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// A fixed stream of numbers in 0..1, enough to make example data look like data.
fn noise() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn guesses() -> Section {
    let mean = |round: usize| 50.0 * (2.0_f64 / 3.0).powf(round as f64);
    let rounds = 0..=10;
    let lines = Figure::Lines {
        title: text("Guesses fall towards zero"),
        x_label: text("round"),
        y_label: text("guess (0 to 100)"),
        series: vec![
            Series {
                name: text("mean guess"),
                points: rounds.clone().map(|r| (r as f64, mean(r))).collect(),
                band: Some(rounds.clone().map(|r| (r as f64, mean(r) * 0.45, mean(r) * 1.7)).collect()),
                ..Series::default()
            },
            Series {
                name: text("target"),
                points: rounds.clone().map(|r| (r as f64, mean(r) * 2.0 / 3.0)).collect(),
                band: None,
                ..Series::default()
            },
            Series {
                name: text("winning guess"),
                points: rounds.map(|r| (r as f64, mean(r) * 0.66 + 0.4)).collect(),
                band: None,
                ..Series::default()
            },
        ],
        caption: text(
            "Mean guess of 1,000 agents with the band from the 10th to the 90th percentile, the target (two thirds of \
             the mean) and the guess nearest to it.",
        ),
    };
    let mut draw = noise();
    let first: Vec<f64> = (0..4000).map(|_| (0..4).map(|_| draw()).sum::<f64>() * 25.0).collect();
    let last: Vec<f64> = first.iter().map(|v| v * 0.2 + draw() * 8.0).collect();
    let (low, high, bins) = automatic_edges(first.iter().chain(&last).copied());
    let distribution = Figure::Histogram {
        title: text("Guesses in the first and the last round"),
        x_label: text("guess (0 to 100)"),
        y_label: text("share of agents (%)"),
        before: histogram(&first, low, high, bins * 3),
        after: Some(histogram(&last, low, high, bins * 3)),
        caption: text("Distribution of guesses in round 0 (before) and round 10 (after)."),
    };
    Section {
        title: text("Guesses"),
        text: Some(text("Every agent guesses a number; the guess nearest to two thirds of the mean wins.")),
        figures: vec![lines, distribution],
        table: Some(DataTable {
            columns: ["metric", "round 0", "round 10", "change"].map(text).to_vec(),
            rows: vec![
                ["mean guess", "50", "0.867", "-49.133"].map(text).to_vec(),
                ["median guess", "49.6", "0.81", "-48.79"].map(text).to_vec(),
                ["Gini", "0.21", "0.34", "0.13"].map(text).to_vec(),
            ],
            caption: text("Metrics in the first and the last round."),
            links: Vec::new(),
        }),
    }
}

fn opinions() -> Section {
    let ideology = [
        "extremely liberal",
        "liberal",
        "slightly liberal",
        "moderate",
        "slightly conservative",
        "conservative",
        "extremely conservative",
    ];
    let axis = BinAxis::Categories(ideology.map(text).to_vec());
    let bins = |counts: [u64; 7], left_out| Bins { axis: axis.clone(), counts: counts.to_vec(), left_out };
    let named = Figure::Histogram {
        title: text("Ideology before and after 40 rounds"),
        x_label: text("ideology"),
        y_label: text("share of respondents (%)"),
        before: bins([16, 103, 147, 256, 170, 218, 34], 0),
        after: Some(bins([0, 61, 250, 320, 221, 92, 0], 3)),
        caption: text("Self-placement of 944 respondents (ANES 1996), before and after the exchange of opinions."),
    };
    let numbers = |counts: &[u64]| {
        let values: Vec<f64> = counts.iter().enumerate().flat_map(|(i, n)| vec![i as f64 + 1.0; *n as usize]).collect();
        histogram(&values, 0.5, 7.5, 7)
    };
    let numeric = Figure::Histogram {
        title: text("The same on the numeric scale"),
        x_label: text("ideology (1 liberal to 7 conservative)"),
        y_label: text("share of respondents (%)"),
        before: numbers(&[16, 103, 147, 256, 170, 218, 34]),
        after: Some(numbers(&[0, 61, 250, 320, 221, 92, 0])),
        caption: text("Seven-point scale."),
    };
    let rounds: Vec<u64> = (0..=40).collect();
    let cells = rounds
        .iter()
        .map(|round| {
            let narrow = 1.0 / (0.02 + 0.3 * (-0.09 * *round as f64).exp());
            let near = |x: f64, centre: f64| (-narrow * (x - centre) * (x - centre)).exp();
            (0..20).map(|i| f64::from(i) / 10.0 - 0.95).map(|x| (near(x, -0.45) + 0.7 * near(x, 0.5)) * 1e3).collect()
        })
        .collect();
    let heat = Figure::Heat {
        title: text("Opinions draw together into two camps"),
        x_label: text("round"),
        y_label: text("opinion (−1 to 1)"),
        rounds,
        bins: BinAxis::Edges((0..=20).map(|i| f64::from(i) / 10.0 - 1.0).collect()),
        cells,
        caption: text("Share of agents at each opinion. Colour grows with the square root of the share."),
    };
    Section { title: text("Opinions"), text: None, figures: vec![named, numeric, heat], table: None }
}

fn debate() -> Section {
    let accuracy = [(0, 61.0, 4.8), (1, 68.5, 4.6), (2, 72.0, 4.4), (3, 72.5, 4.4)];
    let bars = accuracy
        .iter()
        .map(|(round, value, half)| Bar {
            label: round.to_string(),
            value: *value,
            interval: Some((value - half, value + half)),
        })
        .collect();
    let methods = [("single answer", 61.0), ("self-consistency, five samples", 69.0), ("debate, three agents", 72.5)];
    Section {
        title: text("Debate"),
        text: None,
        figures: vec![
            Figure::Bars {
                title: text("Accuracy rises over the rounds of debate"),
                x_label: text("round"),
                y_label: text("correct answers (%)"),
                bars,
                caption: text("Majority answer of three agents on 400 questions; whiskers are 95 % Wilson intervals."),
            },
            Figure::Bars {
                title: text("Accuracy by method"),
                x_label: text("method"),
                y_label: text("correct answers (%)"),
                bars: methods
                    .iter()
                    .map(|(name, value)| Bar { label: text(name), value: *value, interval: None })
                    .collect(),
                caption: text("The same 400 questions."),
            },
        ],
        table: None,
    }
}

fn edges() -> Section {
    let mut draw = noise();
    let mut level = 0.0;
    let long: Vec<(f64, f64)> = (0..20_000)
        .map(|i| {
            level += draw() - 0.5;
            (f64::from(i), if (9000..11_000).contains(&i) { f64::NAN } else { level })
        })
        .collect();
    let line = |title: &str, series: Vec<Series>| Figure::Lines {
        title: text(title),
        x_label: text("round"),
        y_label: text("value"),
        series,
        caption: text("An edge case."),
    };
    let one =
        |name: &str, points: Vec<(f64, f64)>| Series { name: text(name), points, band: None, ..Series::default() };
    let many = (0..9).map(|k| {
        let points = (0..30).map(|r| (f64::from(r), f64::from(k) + (f64::from(r) * 0.3).sin())).collect();
        one(&format!("cohort {k} of the society with a long name that goes on and on"), points)
    });
    Section {
        title: text("Edge cases"),
        text: None,
        figures: vec![
            line("A long walk with a gap", vec![one("walk", long)]),
            line("No point", vec![one("nothing", vec![])]),
            line("One point", vec![one("single", vec![(3.0, 2.0)])]),
            line("Two points", vec![one("pair", vec![(0.0, 1.0), (1.0, 3.0)])]),
            line("A constant", vec![one("always five", (0..10).map(|r| (f64::from(r), 5.0)).collect())]),
            line("Nine series", many.collect()),
            line(
                "Near lines",
                (0..5).map(|k| one(&format!("s{k}"), vec![(0.0, 1.0), (9.0, 2.0 + f64::from(k) * 0.01)])).collect(),
            ),
        ],
        table: None,
    }
}

fn panel(title: &str, chart: Chart) -> Panel {
    Panel { title: text(title), note: text("a note"), chart }
}

fn town() -> Section {
    let mut draw = noise();
    let mut agents = |shape: Shape, heading: bool| {
        let places = (0..300).map(|i| Place {
            x: if shape == Shape::Cell { f64::from(i % 20) } else { draw() * 19.0 },
            y: if shape == Shape::Cell { f64::from(i / 20) } else { draw() * 14.0 },
            heading: heading.then(|| (draw() - 0.5, draw() - 0.5)),
            value: if shape == Shape::Cell { f64::from(i % 3) } else { draw() - 0.5 },
        });
        Agents { shape, range: ((0.0, 19.0), (0.0, 14.0)), places: places.collect(), ties: vec![(0, 1), (2, 900)] }
    };
    let maps = [(Shape::Cell, false), (Shape::Dot, true), (Shape::Dot, false)];
    let maps = maps.map(|(shape, heading)| Figure::Panels {
        title: text("Where the agents are"),
        x_label: text(""),
        panels: ["before", "after"].map(|when| panel(when, Chart::Agents(agents(shape, heading)))).to_vec(),
        marks: vec![],
        shade: text("group"),
        caption: text("A cell is an agent."),
    });
    let node = |parent, x: f64| Node { parent, x, value: 0.5 };
    let tree = vec![node(None, 0.0), node(Some(0), 1.0), node(Some(0), 2.0), node(Some(1), 3.0), node(Some(9), 3.0)];
    let line = |k: u32| Series {
        name: format!("s{k}"),
        points: (0..20).map(|r| (f64::from(r), f64::from(r * k))).collect(),
        reference: k == 2,
        ..Series::default()
    };
    let levels = Chart::Levels {
        names: ["low", "middle", "high"].map(text).to_vec(),
        series: vec![
            Series { band: Some(vec![(0.0, 0.5, 1.5), (2.0, 2.0, 4.0)]), ..line(1) },
            Series { points: vec![(0.0, f64::NAN), (1.0, 2.0)], ..Series::default() },
        ],
        joined: true,
    };
    let distribution =
        |after: Option<Bins>| Chart::Distribution { before: histogram(&[1.0, 2.0, 2.5], 0.0, 4.0, 4), after };
    let charts = Figure::Panels {
        title: text("Town"),
        x_label: text("round"),
        panels: vec![
            panel("one line", Chart::Lines(vec![line(1)])),
            panel("with its parent", Chart::Lines(vec![line(1), line(2), line(3)])),
            panel("levels", levels),
            panel("before and after", distribution(Some(histogram(&[3.0], 0.0, 4.0, 4)))),
            panel("alone", distribution(None)),
            panel("a cascade", Chart::Tree(tree)),
            panel("nothing", Chart::Lines(vec![])),
        ],
        marks: vec![Mark { at: 5.0, label: text("world.fraction = 0.5") }, Mark { at: 99.0, label: text("later") }],
        shade: text("stance"),
        caption: text("Small charts."),
    };
    Section { title: text("Town"), figures: maps.into_iter().chain([charts]).collect(), ..Section::default() }
}

fn example() -> Report {
    Report {
        kind: text(""),
        title: text("Guess two thirds of the average"),
        description: Some(text(
            "A thousand agents play the beauty contest over ten rounds: level-k reasoners, adaptive players and noise.",
        )),
        finding: vec![text("The mean guess fell from 50 to 0.867.")],
        simulated: true,
        status: text("finished"),
        facts: facts(&[
            ("agents", "1,000"),
            ("rounds", "10"),
            ("seed", "7"),
            ("model answers", "1,200"),
            ("cost", "0.00 USD"),
            ("wall time", "0.04 s"),
            ("digest", "9f2c61d8a45be0137c4402f1e8b6d93a"),
        ]),
        sections: vec![guesses(), opinions(), debate()],
        scenario_yaml_or_json: text("world:\n  kind: guess-average\n  fraction: 0.6667\nrounds: 10\nseed: 7\n"),
        reproduce: vec![
            text("polity run scenarios/guess-average.yaml --seed 7"),
            text("polity replay runs/guess-average-7"),
        ],
        methods: text(
            "We simulated a p-beauty contest (p = 2/3) with 1,000 agents over 10 rounds in Polity 0.1.0 (seed 7; run \
             digest 9f2c61d8a45be0137c4402f1e8b6d93a). Half of the agents followed a Poisson cognitive hierarchy.",
        ),
    }
}

/// Every tag closed in order, every attribute quoted once; good enough for what the writer makes.
fn check_tags(page: &str) -> Result<(), String> {
    let page = page.strip_prefix("<!DOCTYPE html>\n").ok_or("no doctype")?;
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        if let Some(stray) = rest[..at].find('>').filter(|_| open.last() != Some(&"style")) {
            return Err(format!("stray > after {:?}", &rest[..stray]));
        }
        let end = at + rest[at..].find('>').ok_or("unclosed tag")?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes another element"));
            }
            continue;
        }
        if tag.starts_with("!--") && tag.ends_with("--") {
            continue;
        }
        if tag.contains('<') || tag.matches('"').count() % 2 == 1 {
            return Err(format!("bad tag {tag:?}"));
        }
        let mut names: Vec<&str> =
            tag.split('"').step_by(2).filter_map(|part| part.strip_suffix('=')?.split(' ').next_back()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("an attribute twice in {tag:?}"));
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if !tag.ends_with('/') && !["meta", "input"].contains(&name) {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

/// The page of a report, which must be sound whatever is in it.
fn sound(report: &Report) -> String {
    let page = render(report);
    assert_eq!(check_tags(&page), Ok(()));
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "an id is used twice");
    for (i, part) in
        page.split("aria-labelledby=\"").skip(1).chain(page.split("aria-describedby=\"").skip(1)).enumerate()
    {
        let id = part.split('"').next().unwrap_or_default();
        assert!(unique.binary_search(&id).is_ok(), "reference {i} to nowhere: {id}");
    }
    for number in ["NaN", "inf\"", "inf "] {
        let inside = page.split("<svg").skip(1).filter_map(|svg| svg.split("</svg>").next());
        let odd = inside.clone().find(|svg| svg.contains(number));
        assert_eq!(odd, None, "{number} in a chart");
    }
    page
}

#[test]
fn the_checker_sees_bad_tags() {
    for page in ["<p>", "<p></b>", "</p>", "<p a=\"></p>", "a > b<p></p>", "<p a=\"1\" a=\"2\"></p>"] {
        assert!(check_tags(&format!("<!DOCTYPE html>\n{page}")).is_err(), "{page}");
    }
    assert_eq!(check_tags("<!DOCTYPE html>\n<p a=\"1\" b=\"2\">x<i/></p>"), Ok(()));
}

/// To look at the page: `POLITY_EXAMPLE_REPORT=/tmp/report.html cargo test -p polity report`.
#[test]
fn an_example_is_well_formed_and_complete() {
    let report = example();
    let page = sound(&report);
    for words in
        ["Guesses fall towards zero", "Figure 7.", "Table 1.", "Simulated models.", "Data (11 rows)", "50 at 0"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<svg").count(), 14);
    assert_eq!(page.matches("role=\"img\"").count(), 14);
    let with_edges = Report { sections: vec![guesses(), opinions(), debate(), edges(), town()], ..report };
    let page = sound(&with_edges);
    if let Ok(path) = std::env::var("POLITY_EXAMPLE_REPORT") {
        std::fs::write(path, &page).unwrap();
    }
    assert!(page.len() < 900_000, "{} bytes", page.len());
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(render(&example()), render(&example()));
}

#[test]
fn a_page_that_was_changed_is_found() {
    let page = render(&example());
    assert!(is_as_written(page.as_bytes()));
    for at in (0..page.len()).step_by(997).chain([page.len() - 2]) {
        let mut changed = page.clone().into_bytes();
        changed[at] ^= 1;
        assert!(!is_as_written(&changed) && !is_as_written(&page.as_bytes()[..at]), "at {at}");
    }
    assert!(!is_as_written(format!("{page}<p>more</p>").as_bytes()));
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let page = render(&example()).to_lowercase();
    for forbidden in
        ["http://", "https://", "url(", "src=", "@import", "<script", "<link", "<iframe", "javascript:", " on"]
    {
        // " on" begins every event handler attribute; as a word it appears in text, never inside a tag.
        let found = if forbidden == " on" {
            page.split('<')
                .skip(1)
                .filter_map(|tag| tag.split('>').next())
                .any(|tag| tag.split('"').step_by(2).any(|part| part.trim_start().starts_with("on")))
        } else {
            page.contains(forbidden)
        };
        assert!(!found, "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn nothing_that_comes_from_outside_becomes_markup() {
    let evil = "\"><script>alert('x')</script><img onerror=a>]]>&amp;\u{0}\u{1b}";
    let e = || text(evil);
    let axis = BinAxis::Categories(vec![e(), format!("{evil}{evil}")]);
    let bins = Bins { axis: axis.clone(), counts: vec![1, 2], left_out: 1 };
    let long = e().repeat(50);
    let series =
        |name: String, y: f64| Series { name, points: vec![(0.0, y), (1.0, 2.0)], band: None, ..Series::default() };
    let lines = |series| Figure::Lines { title: e(), x_label: e(), y_label: e(), series, caption: e() };
    let figures = vec![
        lines(vec![series(e(), 1.0), series(long.clone(), f64::NAN), Series { name: e(), ..Series::default() }]),
        lines((0..30).map(|_| series(long.clone(), 1.0)).collect()),
        lines(vec![]),
        Figure::Histogram {
            title: e(),
            x_label: e(),
            y_label: e(),
            before: bins.clone(),
            after: Some(bins),
            caption: e(),
        },
        Figure::Bars {
            title: e(),
            x_label: e(),
            y_label: e(),
            bars: vec![
                Bar { label: e(), value: 1.0, interval: Some((0.5, 1.5)) },
                Bar { label: long.clone(), value: 2.0, interval: None },
            ],
            caption: e(),
        },
        Figure::Heat {
            title: e(),
            x_label: e(),
            y_label: e(),
            rounds: vec![0, 1],
            bins: axis,
            cells: vec![vec![1.0, 2.0]; 2],
            caption: e(),
        },
        Figure::Panels {
            title: e(),
            x_label: e(),
            panels: vec![
                Panel { title: e(), note: long.clone(), chart: Chart::Lines(vec![series(e(), 1.0), series(e(), 3.0)]) },
                Panel {
                    title: long.clone(),
                    note: e(),
                    chart: Chart::Levels { names: vec![e(), e()], series: vec![series(e(), 1.0)], joined: false },
                },
                Panel {
                    title: e(),
                    note: e(),
                    chart: Chart::Agents(Agents { places: vec![Place::default()], ..Agents::default() }),
                },
            ],
            marks: vec![Mark { at: 1.0, label: long.clone() }],
            shade: e(),
            caption: e(),
        },
    ];
    let table = DataTable {
        columns: vec![e(), long.clone()],
        rows: vec![vec![e(), long], vec![]],
        caption: e(),
        links: vec![e()],
    };
    let report = Report {
        kind: text(""),
        title: e(),
        description: Some(e()),
        finding: vec![e()],
        simulated: false,
        status: e(),
        facts: vec![(e(), e())],
        sections: vec![Section { title: e(), text: Some(e()), figures, table: Some(table) }],
        scenario_yaml_or_json: e(),
        reproduce: vec![e()],
        methods: e(),
    };
    let page = sound(&report);
    assert!(page.contains("&lt;script&gt;"));
    for markup in ["<script", "<img", "\u{0}", "\u{1b}"] {
        assert!(!page.contains(markup), "{markup:?}");
    }
    assert!(!page.contains("Simulated models."));
}

#[test]
fn an_empty_run_says_so() {
    let page = sound(&Report { title: text("Nothing yet"), status: text("stopped"), ..Report::default() });
    assert_eq!(page.matches("Nothing was measured yet.").count(), 1);
    let empty = Section {
        title: text("Metrics"),
        figures: vec![
            Figure::Lines {
                title: text("a"),
                x_label: text("round"),
                y_label: text("y"),
                series: vec![],
                caption: text(""),
            },
            Figure::Histogram {
                title: text("b"),
                x_label: text("x"),
                y_label: text("y"),
                before: histogram(&[], 0.0, 1.0, 4),
                after: None,
                caption: text(""),
            },
            Figure::Bars { title: text("c"), x_label: text("x"), y_label: text("y"), bars: vec![], caption: text("") },
            Figure::Heat {
                title: text("d"),
                x_label: text("round"),
                y_label: text("y"),
                rounds: vec![],
                bins: BinAxis::Categories(vec![]),
                cells: vec![],
                caption: text(""),
            },
        ],
        ..Section::default()
    };
    let sections = vec![empty, Section { title: text("None"), ..Section::default() }];
    let page = sound(&Report { sections, ..Report::default() });
    assert_eq!(page.matches("Nothing was measured yet.").count(), 5);
    assert!(!page.contains("<svg"));
}

#[test]
fn odd_values_draw_without_harm() {
    let odd = [f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, -0.0, 5e-324, 1e300, -1e300, 1e15, 1e15 + 1.0];
    let mut figures = Vec::new();
    for a in odd {
        for b in odd {
            let points = vec![(0.0, a), (1.0, b), (a, 1.0), (b, a)];
            figures.push(Figure::Lines {
                title: text("odd"),
                x_label: text("x"),
                y_label: text("y"),
                series: vec![Series {
                    name: text("s"),
                    points,
                    band: Some(vec![(0.0, a, b), (a, b, a)]),
                    ..Series::default()
                }],
                caption: text(""),
            });
            let place = Place { x: a, y: b, heading: Some((b, a)), value: a };
            let agents =
                |shape| Agents { shape, range: ((a, b), (b, 2.0)), places: vec![place; 2], ties: vec![(0, 1)] };
            let levels = vec![Series { points: vec![(0.0, a), (1.0, b)], ..Series::default() }];
            let charts = vec![
                Chart::Lines(levels.clone()),
                Chart::Levels { names: vec![text("x")], series: levels, joined: true },
                Chart::Agents(agents(Shape::Cell)),
                Chart::Agents(agents(Shape::Dot)),
                Chart::Tree(vec![Node { parent: Some(0), x: a, value: b }, Node { parent: Some(0), x: b, value: a }]),
            ];
            figures.push(Figure::Panels {
                title: text("odd"),
                x_label: text("x"),
                panels: charts.into_iter().map(|chart| panel("odd", chart)).collect(),
                marks: vec![Mark { at: a, label: text("m") }],
                shade: text("s"),
                caption: text(""),
            });
            figures.push(Figure::Bars {
                title: text("odd"),
                x_label: text("x"),
                y_label: text("y"),
                bars: vec![Bar { label: text("n"), value: a, interval: Some((b, a)) }],
                caption: text(""),
            });
            figures.push(Figure::Heat {
                title: text("odd"),
                x_label: text("x"),
                y_label: text("y"),
                rounds: vec![3, 3, 1, u64::MAX],
                bins: BinAxis::Edges(vec![a, b, 2.0]),
                cells: vec![vec![a, b], vec![b], vec![], vec![1.0, a, 3.0]],
                caption: text(""),
            });
            figures.push(Figure::Histogram {
                title: text("odd"),
                x_label: text("x"),
                y_label: text("y"),
                before: Bins {
                    axis: BinAxis::Edges(vec![a, b]),
                    counts: vec![u64::MAX, u64::MAX, 1],
                    left_out: u64::MAX,
                },
                after: Some(histogram(&odd, a, b, 5)),
                caption: text(""),
            });
        }
    }
    sound(&Report { sections: vec![Section { figures, ..Section::default() }], ..Report::default() });
}

#[test]
fn long_data_stay_a_small_page() {
    let points: Vec<(f64, f64)> = (0..200_000).map(|i| (f64::from(i), f64::from(i % 977))).collect();
    let series = (0..6)
        .map(|k| Series { name: format!("s{k}"), points: points.clone(), band: None, ..Series::default() })
        .collect();
    let lines = Figure::Lines { title: text("t"), x_label: text("x"), y_label: text("y"), series, caption: text("c") };
    let names = (0..50_000).map(|i| format!("choice {i}")).collect();
    let many = Bins { axis: BinAxis::Categories(names), counts: vec![1; 50_000], left_out: 0 };
    let histogram = Figure::Histogram {
        title: text("t"),
        x_label: text("x"),
        y_label: text("y"),
        before: many,
        after: None,
        caption: text("c"),
    };
    let bars = vec![Bar { label: text("b"), value: 1.0, interval: None }; 5000];
    let bars = Figure::Bars { title: text("t"), x_label: text("x"), y_label: text("y"), bars, caption: text("c") };
    let heat = Figure::Heat {
        title: text("t"),
        x_label: text("x"),
        y_label: text("y"),
        rounds: (0..3000).collect(),
        bins: BinAxis::Edges((0..=300).map(f64::from).collect()),
        cells: vec![vec![1.0; 300]; 3000],
        caption: text("c"),
    };
    let table = DataTable { columns: vec![text("n")], rows: vec![vec![text("1")]; 10_000], ..DataTable::default() };
    let section = Section { figures: vec![lines, histogram, bars, heat], table: Some(table), ..Section::default() };
    let page = sound(&Report { sections: vec![section], ..Report::default() });
    assert!(page.len() < 2_500_000, "{} bytes", page.len());
    assert!(page.contains("The first 200 of 10,000 rows"));
    assert!(page.contains("Data (200,000 rows)"));
    assert!(page.contains("49971 more"));
}

#[test]
fn panels_share_marks_and_colours_and_say_what_they_are() {
    let page = sound(&Report { sections: vec![town()], ..Report::default() });
    let charts: Vec<&str> = page.split("<div class=\"panel\">").skip(1).collect();
    assert_eq!(charts.len(), 13);
    // Cells of three groups have three colours, and no fourth; a tie to nobody is not drawn.
    assert_eq!(charts[0].matches("class=\"area c").count(), 3);
    assert_eq!(charts[0].matches("class=\"ties\" d=\"M").count(), 1);
    assert_eq!(charts[0].matches("h0.9v0.9h-0.9z").count(), 300);
    assert!(charts[2].contains("class=\"area d0\"") && charts[4].contains("class=\"dots d6\""));
    // A mark within the axis is drawn in every chart of lines, with its letter; its label stands once above them.
    assert_eq!(charts[6..8].iter().map(|chart| chart.matches("class=\"change\"").count()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(page.matches("world.fraction = 0.5").count(), 1);
    // What is compared with is grey; a single line has its last value at its end.
    assert!(charts[7].contains("class=\"line before dashed\"") && charts[7].contains(">s3</text>"));
    assert!(charts[6].contains(">19</text>"));
    // The section has the title of the figure, which is not shown twice.
    assert_eq!(page.matches("class=\"quiet\"").count(), 1);
    assert!(page.contains("one line: s1"));
}

#[test]
fn a_long_page_has_contents_and_long_tables_are_folded() {
    let table = |rows: usize| DataTable {
        columns: vec![text("run"), text("value")],
        rows: vec![vec![text("a"), text("1.2 to 1.4")]; rows],
        caption: text("c"),
        links: vec![text("runs/a/"), text("https://elsewhere"), text("../up")],
    };
    let section = |rows| Section { title: text("<T>"), table: Some(table(rows)), ..Section::default() };
    let page = sound(&Report { sections: vec![section(3), section(40)], ..example() });
    for at in ["#part-1\">&lt;T&gt;", "#part-2", "#methods", "#reproduce", "#scenario"] {
        assert!(page.contains(&format!("<a href=\"{at}")), "{at}");
    }
    assert_eq!(page.matches("<details class=\"table keep\" open>").count(), 1);
    assert!(page.contains("<td><a href=\"runs/a/\">a</a></td><td class=\"number\">1.2 to 1.4</td>"));
    assert!(!page.contains("elsewhere") && !page.contains("../up"));
    let short = sound(&Report { sections: vec![section(3)], ..Report::default() });
    assert!(!short.contains("class=\"contents\""));
}

#[test]
fn the_finding_stands_first_and_says_that_models_are_simulated() {
    let page = sound(&example());
    let at = |words: &str| page.find(words).unwrap();
    assert!(at("The mean guess fell from 50 to 0.867.") < at("<dl class=\"facts\">"));
    assert!(page.contains("What it shows <span class=\"simulated\">simulated models</span>"));
    assert!(!sound(&Report { simulated: false, ..example() }).contains("class=\"simulated\""));
}

#[test]
fn a_gap_splits_the_drawn_line() {
    let drawn = |middle: f64| {
        let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, middle), (3.0, 4.0), (4.0, 5.0)];
        let series = vec![Series { name: text("s"), points, band: None, ..Series::default() }];
        let lines =
            Figure::Lines { title: text("t"), x_label: text("x"), y_label: text("y"), series, caption: text("c") };
        figure::html(&lines, 1, "").matches("<path class=\"line c0\"").count()
    };
    assert_eq!(drawn(3.0), 2);
    assert_eq!(drawn(f64::NAN), 4);
}
