//! Reports of runs: the finding, the picture that matters first, changes and the parent of a fork, cascades.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the program and returns the report of the run.
fn page(folder: &Path, args: &[&str], run: &str) -> String {
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let args: Vec<String> = args.iter().map(|arg| arg.replace("SCENARIOS", scenarios)).collect();
    let said = Command::new(env!("CARGO_BIN_EXE_polity")).current_dir(folder).args(&args).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    fs::read_to_string(folder.join(run).join("report.html")).unwrap()
}

fn panels(page: &str) -> Vec<&str> {
    page.split("<div class=\"panel\">").skip(1).collect()
}

#[test]
fn a_town_is_a_map_and_the_finding_says_how_it_ended() {
    let home = tempfile::tempdir().unwrap();
    let page = page(home.path(), &["run", "SCENARIOS/schelling.yaml", "--agents", "500", "--out", "town"], "town");
    let finding = page.split("class=\"finding\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(
        finding.contains("like-share.mean rose from 0.") && finding.contains("of 40 rounds: nobody moves any more.")
    );
    assert!(page.contains("<dt>status</dt><dd>ended early</dd>"));
    let panels = panels(&page);
    for (picture, title) in panels[..2].iter().zip(["before the first round", "after the last round"]) {
        let cells = |class: &str| picture.split(class).nth(1).unwrap().split('"').next().unwrap().matches('M').count();
        assert!(picture.contains(title) && picture.contains("class=\"picture\""));
        assert_eq!(cells("<path class=\"area c0\" d=\"") + cells("<path class=\"area c1\" d=\""), 500, "{title}");
    }
    assert!(panels[0] != panels[1], "people moved");
    // The map shows where agents are: no histograms of coordinates.
    assert!(!page.contains(">x</h4>") && page.contains(">like-share</h4>"));
}

#[test]
fn a_fork_is_compared_with_its_parent_where_that_is() {
    let home = tempfile::tempdir().unwrap();
    let parent = page(home.path(), &["run", "SCENARIOS/guess-average.yaml", "--out", "parent"], "parent");
    assert!(!parent.contains("parent</text>") && !parent.contains("Compared with its parent"));
    let args = ["fork", "parent", "--at", "4", "-P", "world.fraction=0.5", "--out", "fork"];
    let fork = page(home.path(), &args, "fork");
    for words in [
        "From round 4 on, world.fraction is 0.5 instead of 0.667; in its parent guess.mean ended at",
        "Round 4 is the first that differs.",
        "<b>A</b> round 4: world.fraction = 0.5",
        "<td>world<wbr/>.fraction, from round 4 on</td>",
        "The run was forked from the run “guess-average” at round 4: up to then both are the same.",
        "From round 4 on, world.fraction was 0.5.",
        "70 % of the agents (",
    ] {
        assert!(fork.contains(words), "{words}");
    }
    let guess = panels(&fork).into_iter().find(|panel| panel.contains(">guess</h4>")).unwrap();
    assert!(
        guess.contains("class=\"line before dashed\"")
            && guess.contains("class=\"change\"")
            && guess.contains("class=\"band c0\"")
    );
    fs::rename(home.path().join("parent"), home.path().join("gone")).unwrap();
    let alone = page(home.path(), &["report", "fork"], "fork");
    assert!(!alone.contains("Compared with its parent") && alone.contains("From round 4 on: world.fraction = 0.5."));
}

#[test]
fn a_platform_has_cascades_stances_and_one_chart_of_acts() {
    let home = tempfile::tempdir().unwrap();
    let change = "changes=[{at: 6, set: {world.feed: 5}}]";
    let args = ["run", "SCENARIOS/platform.yaml", "--agents", "400", "--rounds", "20", "-P", change, "--out", "run"];
    let page = page(home.path(), &args, "run");
    let panels = panels(&page);
    let acts = panels.iter().find(|panel| panel.contains(">acts in the round</h4>")).unwrap();
    assert!(["likes", "shares", "comments"].iter().all(|name| acts.contains(&format!(">{name}</text>"))));
    assert!(acts.contains("class=\"change\"") && !page.contains(">refused</h4>"));
    assert!(page.contains("The same in all rounds: ") && page.contains("refused = 0"));
    // Rows of the heat map are stances, not numbers of bins.
    assert!(!page.contains("b00") && page.contains("−1 to −0.8"));
    let cascades = page.split("The largest cascades</h2>").nth(1).unwrap();
    assert!(cascades.contains("shares and quotes, until round") && cascades.contains("class=\"dots "));
    // A methods paragraph is for people.
    let methods = page.split("<div class=\"methods\">").nth(1).unwrap().split("</div>").next().unwrap();
    assert!(
        methods.contains("From round 6 on, world.feed was 5.")
            && methods.contains("All agents followed the policy “user”")
    );
    assert!(!methods.contains(['{', '[']) && !methods.contains("&quot;"), "{methods}");
}

#[test]
fn figures_and_tables_are_files_for_papers() {
    let home = tempfile::tempdir().unwrap();
    let args = ["run", "SCENARIOS/guess-average-minds.yaml", "--agents", "12", "--rounds", "3", "--out", "run"];
    page(home.path(), &args, "run");
    let report = |args: &[&str]| {
        let said =
            Command::new(env!("CARGO_BIN_EXE_polity")).arg("report").args(args).current_dir(&home).output().unwrap();
        (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    let (done, said) = report(&["run", "--figures", "paper", "--tables", "paper"]);
    assert!(done, "{said}");
    let mut names: Vec<String> = fs::read_dir(home.path().join("paper"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.iter().all(|name| name.starts_with("figure-") || name.starts_with("table-")), "{names:?}");
    for (start, ends) in [("figure-1-", ["csv", "pdf", "svg"]), ("table-1-", ["csv", "md", "tex"])] {
        let own: Vec<&String> = names.iter().filter(|name| name.starts_with(start)).collect();
        assert_eq!(own.len(), 3, "{names:?}");
        for (name, end) in own.into_iter().zip(ends) {
            let text = String::from_utf8_lossy(&fs::read(home.path().join("paper").join(name)).unwrap()).into_owned();
            assert!(name.ends_with(end), "{name}");
            // Wherever a number stands but in plain data.
            assert!(end == "csv" || text.contains("no evidence about any real model"), "{name}");
        }
    }
    // The same again; but nothing is written among what is not Polity's.
    assert!(report(&["run", "--figures", "paper"]).0);
    fs::create_dir(home.path().join("mine")).unwrap();
    fs::write(home.path().join("mine/notes.txt"), "mine").unwrap();
    let (done, said) = report(&["run", "--figures", "mine"]);
    assert!(!done && said.contains("mine is not empty"), "{said}");
}

#[test]
fn a_small_society_is_drawn_as_a_network() {
    let home = tempfile::tempdir().unwrap();
    let args = ["run", "SCENARIOS/voters.yaml", "--agents", "60", "--out", "run"];
    let page = page(home.path(), &args, "run");
    let panels = panels(&page);
    assert!(page.contains("Who is tied to whom") && panels[0].contains("class=\"ties\""));
    let ties = |panel: &str| panel.split("class=\"ties\" d=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(ties(panels[0]), ties(panels[1]), "agents stand where they stood");
    let again = self::page(home.path(), &["report", "run"], "run");
    assert!(page == again, "the same run gives the same bytes");
}
