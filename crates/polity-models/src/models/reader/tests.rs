//! What the rules find in each wording, how readers review, and the surveys of `systems/sageval`, which are generated here.

use super::rules::{Defect, Question, Survey};
use super::*;
use polity_kernel::ask::{Asker, ChatMessage, EffectId, Role, Value};
use std::fs;
use std::path::PathBuf;
use std::task::{Context, Poll, Waker};

/// Topics, as titles and questions name them.
const TOPICS: [&str; 10] = [
    "the library",
    "the canteen",
    "the museum",
    "the swimming pool",
    "the hotel",
    "the online shop",
    "the city park",
    "the training course",
    "the bus line",
    "the sports club",
];

/// Sound questions, with TOPIC for the topic: their options, and the same in other words.
const SOUND: [(&str, &[&str], &str); 14] = [
    (
        "How often do you visit TOPIC?",
        &["never", "once a month", "once a week", "daily"],
        "How frequently do you come to TOPIC?",
    ),
    (
        "How content are you with the staff of TOPIC?",
        &["not at all", "somewhat", "very"],
        "Do the people who work at TOPIC please you?",
    ),
    ("How content are you with the prices of TOPIC?", &["not at all", "somewhat", "very"], "Is TOPIC worth its money?"),
    ("What would you change first about TOPIC?", &[], "Which one improvement does TOPIC need most?"),
    ("What do you like best about TOPIC?", &[], "Name the strongest point of TOPIC."),
    (
        "How did you hear of TOPIC?",
        &["from friends", "from advertising", "in another way"],
        "Who or what brought you to TOPIC?",
    ),
    (
        "How likely are you to recommend TOPIC?",
        &["not likely", "perhaps", "very likely"],
        "Would you speak well of TOPIC to a friend?",
    ),
    (
        "How old are you?",
        &["under 18", "18 to 39", "40 to 64", "65 and older"],
        "In which year were you born, or roughly so?",
    ),
    (
        "How many people live in your household?",
        &["1", "2", "3", "more than 3"],
        "What is the size of your family at home?",
    ),
    (
        "When you go to TOPIC, how long do you stay there?",
        &["under 30", "30 to 60", "more than 60"],
        "How many minutes does a visit to TOPIC last?",
    ),
    ("What is missing there?", &[], "What did you look for at TOPIC in vain?"),
    // Sound questions that look like defects.
    (
        "How great is the distance from your home to TOPIC?",
        &["under 1", "1 to 5", "more than 5"],
        "How far away from TOPIC do you live?",
    ),
    (
        "How crowded is TOPIC on working days?",
        &["not at all", "somewhat", "very"],
        "Are there many people at TOPIC from Monday to Friday?",
    ),
    ("In which of these years did you first see TOPIC?", &["2015", "2018", "2021"], "Since when have you known TOPIC?"),
];

/// Questions with a defect, their options, and whether the rule finds it.
const LEADING: [(&str, &[&str], bool); 4] = [
    ("Don't you agree that the staff of TOPIC is friendly?", &["yes", "yes, very much"], true),
    ("How wonderful was your last visit to TOPIC?", &["good", "very good"], true),
    ("Most people enjoy TOPIC a lot. Do you enjoy it as well?", &["yes", "no"], false),
    ("How much did the helpful staff of TOPIC help you?", &["much", "very much"], false),
];
const OVERLAP: [(&str, &[&str], bool); 3] = [
    ("At what age did you first come to TOPIC?", &["under 18", "18 to 30", "25 to 40", "more than 40"], true),
    ("How many times a year do you go to TOPIC?", &["0", "1 to 5", "5 to 20", "more than 20"], true),
    ("At what time of day do you go to TOPIC?", &["before noon", "in the morning", "in the evening"], false),
];
const GAP: [(&str, &[&str], bool); 3] = [
    ("How many hours a month do you spend at TOPIC?", &["0 to 2", "5 to 10", "more than 10"], true),
    ("Which mark do you give TOPIC?", &["1", "2", "4", "5"], true),
    ("How clean is TOPIC?", &["very dirty", "dirty", "very clean"], false),
];
const BESIDE: [(&str, &[&str], bool); 4] = [
    ("What is the capital of France?", &["Paris", "Lyon"], true),
    ("Which films have you seen this year?", &[], true),
    ("How old is your car?", &["new", "a few years", "many years"], false),
    ("Do you think it will rain tomorrow?", &["yes", "no"], false),
];

fn question((text, options): (&str, &[&str]), topic: &str) -> Question {
    Question {
        text: text.replace("TOPIC", topic),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

/// A defective question and where it goes: a repetition of a sound one must come after that.
fn defective(defect: Defect, survey: &Survey, of: &[usize], topic: &str, draws: &mut Draws) -> (Question, usize) {
    let mut pick = |from: &[(&str, &[&str], bool)]| {
        let (text, options, _) = from[draws.below(from.len() as u64) as usize];
        question((text, options), topic)
    };
    let made = match defect {
        Defect::Leading => pick(&LEADING),
        Defect::Overlap => pick(&OVERLAP),
        Defect::Gap => pick(&GAP),
        Defect::Beside => pick(&BESIDE),
        Defect::Repeated => {
            let (text, options, other) = SOUND[of[draws.below(of.len() as u64) as usize]];
            let text = match draws.below(3) {
                0 => text.to_owned(),
                1 => format!("Please tell us: {text}"),
                _ => other.to_owned(),
            };
            return (question((&text, options), topic), survey.questions.len());
        }
    };
    (made, draws.below(survey.questions.len() as u64 + 1) as usize)
}

/// A survey with this many defects of different kinds.
fn generated(n: u32) -> (Survey, Vec<Defect>, &'static str) {
    let mut draws = Draws::new(321, Stream::Driver, n, 0);
    let topic = TOPICS[(n / 5) as usize % TOPICS.len()];
    let mut of: Vec<usize> = (0..SOUND.len()).collect();
    draws.shuffle(&mut of);
    of.truncate(5);
    let questions = of.iter().map(|i| question((SOUND[*i].0, SOUND[*i].1), topic)).collect();
    let mut survey = Survey { title: format!("Survey on {topic}"), questions };
    let mut defects = Defect::ALL.to_vec();
    draws.shuffle(&mut defects);
    defects.truncate((n % 5) as usize);
    for defect in &defects {
        let (question, at) = defective(*defect, &survey, &of, topic, &mut draws);
        survey.questions.insert(at, question);
    }
    (survey, defects, topic)
}

fn name(defect: &Defect) -> &'static str {
    match defect {
        Defect::Repeated => "repeated question",
        Defect::Leading => "leading question",
        Defect::Overlap => "overlapping options",
        Defect::Gap => "gap between options",
        Defect::Beside => "beside the topic",
    }
}

/// Lines of the data set: a survey with n defects has the score 5 - n.
#[test]
fn the_surveys_of_sageval_are_generated() {
    let line = |n: u32| {
        let (survey, defects, topic) = generated(n);
        let text = format!("Evaluate this survey on {topic}.\n\n{}", serde_json::to_string(&survey).unwrap());
        let defects = defects.iter().map(name).collect::<Vec<_>>().join(", ");
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        format!("{{\"text\": {}, \"score\": \"{}\", \"defects\": {}}}\n", quoted(&text), 5 - n % 5, quoted(&defects))
    };
    let made: String = (0..100).map(line).collect();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../systems/sageval/planted.jsonl");
    if std::env::var_os("POLITY_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == made, "write them anew with POLITY_BLESS=1");
    let texts: BTreeSet<&str> = made.lines().collect();
    assert_eq!(texts.len(), 100);
}

#[test]
fn rules_find_what_the_readme_says_and_miss_the_rest() {
    let alone = |question: Question| Survey { title: "Survey on the library".into(), questions: vec![question] };
    let planted = [
        (Defect::Leading, &LEADING[..]),
        (Defect::Overlap, &OVERLAP[..]),
        (Defect::Gap, &GAP[..]),
        (Defect::Beside, &BESIDE[..]),
    ];
    for (defect, planted) in planted {
        for (text, options, found) in planted {
            assert_eq!(defect.at(&alone(question((*text, *options), "the library")), 0), *found, "{text}");
        }
    }
    // Sound questions: only the three that look like defects are taken for some.
    let mut wrong = Vec::new();
    for (text, options, other) in SOUND {
        let sound = question((text, options), "the library");
        wrong.extend(
            Defect::ALL.iter().filter(|defect| defect.at(&alone(sound.clone()), 0)).map(|defect| (text, *defect)),
        );
        let twice = |again: &str| Survey {
            title: "Survey on the library".into(),
            questions: vec![sound.clone(), question((again, options), "the library")],
        };
        for (again, found) in
            [(text.to_owned(), true), (format!("Please tell us: {text}"), true), (other.to_owned(), false)]
        {
            assert_eq!(Defect::Repeated.at(&twice(&again), 1), found, "{again}");
        }
    }
    assert_eq!(wrong, [(SOUND[11].0, Defect::Leading), (SOUND[13].0, Defect::Gap)]);
    assert!(!Defect::Leading.at(&alone(question(("x", &[]), "")), 7), "there is no such question");
}

fn asked(aspect: &str, survey: &Survey, said: Option<&str>, model: &str, (actor, n): (u32, u32)) -> Effect {
    let mut parts = vec![Part::Text(format!("Evaluate this.\n\n{}", serde_json::to_string(survey).unwrap()))];
    let say = |why: &str| Part::Said { by: "E".into(), answer: "2".into(), reasons: why.into() };
    parts.extend(said.map(say));
    parts.push(Part::Text(format!("Look at one aspect alone: {aspect}. Give your reasons.")));
    let number = ResponseFormat::Number { low: 1.0, high: 5.0, whole: true };
    let format = ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), number)]);
    let id = EffectId { item: 0, round: 0, actor, asker: Asker::Member, n };
    let request = Request::new(model, vec![ChatMessage { role: Role::User, parts }], format);
    Effect { id, request, hidden: None, default: None }
}

fn answered(effect: &Effect, seed: u64) -> Outcome {
    match Reader.answer(effect, seed).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(exchange)) => exchange.outcome,
        other => panic!("{other:?}"),
    }
}

fn scored(effect: &Effect, seed: u64) -> (String, f64) {
    let outcome = answered(effect, seed);
    let Outcome::Reply { value: Value::Record(fields), repaired: false, .. } = outcome else { panic!("{outcome:?}") };
    let [Value::Text(why), Value::Number(mark)] = &fields[..] else { panic!("{fields:?}") };
    (why.clone(), *mark)
}

fn faulty() -> Survey {
    let of = |(text, options, _): (&str, &[&str], bool)| question((text, options), "the library");
    let twice = || question((SOUND[0].0, SOUND[0].1), "the library");
    Survey {
        title: "Survey on the library".into(),
        questions: vec![twice(), of(LEADING[0]), of(GAP[0]), twice(), of(BESIDE[0])],
    }
}

#[test]
fn a_reader_scores_an_aspect_by_what_it_finds_in_the_text() {
    let of = |aspect: &str| scored(&asked(aspect, &faulty(), None, "reader/surveys", (0, 0)), 1);
    assert_eq!(of("tone"), ("Question 2 leads to an answer.".into(), 4.0));
    assert_eq!(of("accuracy"), ("Question 3 has a gap between its options.".into(), 4.0));
    let both = "Question 4 repeats an earlier one. Question 5 is beside the topic.";
    assert_eq!(of("engagement of its audience"), (both.into(), 3.0));
    assert_eq!(of("beauty"), ("Nothing is wrong.".into(), 5.0));
    // A reader that skips all questions finds nothing, and one that skips some is another in each call.
    assert_eq!(scored(&asked("tone", &faulty(), None, "reader/surveys?lapse=1", (0, 0)), 1).1, 5.0);
    let skips = |n: u32| scored(&asked("tone", &faulty(), None, "reader/surveys?lapse=0.3", (0, n)), 1).1 == 5.0;
    let share = (0..2000).filter(|n| skips(*n)).count() as f64 / 2000.0;
    assert!((share - 0.3).abs() < 5.0 * (0.21f64 / 2000.0).sqrt(), "{share}");
}

#[test]
fn a_review_confirms_what_is_there_and_nothing_else() {
    let blind = "reader/surveys?lapse=1";
    let of = |aspect: &str, said: &str| scored(&asked(aspect, &faulty(), Some(said), blind, (1, 0)), 1);
    assert_eq!(of("tone", "Question 2 leads to an answer."), ("Question 2 leads to an answer.".into(), 4.0));
    // Nowhere near, not there, of another aspect, no sentence of a reader.
    for said in [
        "Question 1 leads to an answer.",
        "Question 9 leads to an answer.",
        "Question 0 leads to an answer.",
        "Question 4 repeats an earlier one.",
        "All questions lead.",
        "",
    ] {
        assert_eq!(of("tone", said).1, 5.0, "{said}");
    }
}

#[test]
fn what_is_no_survey_is_not_scored() {
    let mut effect = asked("tone", &faulty(), None, "reader/surveys", (0, 0));
    effect.request.messages = vec![ChatMessage::text(Role::User, "What is 2 + 2?")].into();
    assert_eq!(answered(&effect, 1), Outcome::Failed { why: "there is no survey in the request".into() });
    let mut effect = asked("tone", &faulty(), None, "reader/surveys", (0, 0));
    effect.request.response_format = ResponseFormat::Text;
    assert!(matches!(answered(&effect, 1), Outcome::Failed { .. }));
    for model in
        ["reader/", "reader/books", "reader/surveys?lapse=2", "reader/surveys?lapse=NaN", "reader/surveys?skip=1"]
    {
        assert!(Reader.check(model).is_err(), "{model}");
    }
    assert_eq!(Reader.check("reader/surveys?lapse=0.25"), Ok(()));
}
