// The life of one agent.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, ofRun, post, type Act, type AgentLife, type Cell, type Message, type Observation } from "../api";
import { Spark } from "../charts/spark";
import { count, money, num, roundName } from "../format";
import { Empty, Fact, Facts, Scroll, Section, Wait } from "../parts";
import { href } from "../route";
import { useLoad, useRun, words } from "../state";
import { plain, Text } from "../text";
import { cellText } from "./agents";
import { CallCard, keyOf } from "./calls";
import { MessageList } from "./messages";

export function Agent({ agent }: { agent: string }): JSX.Element {
  const { id, run, version } = useRun();
  const loaded = useLoad<AgentLife>(ofRun(id, `agents/${encodeURIComponent(agent)}`), {}, version);
  const number = Number(agent);
  return (
    <>
      <div class="title-row">
        <h1>Agent {plain(agent)}</h1>
        <nav class="steps" aria-label="Other agents">
          {number > 0 && <a href={href(["run", id, "agents", number - 1])}>Previous</a>}
          {(run.agents === null || number + 1 < run.agents) && <a href={href(["run", id, "agents", number + 1])}>Next</a>}
          <a href={href(["run", id, "agents"])}>All agents</a>
        </nav>
      </div>
      <Wait of={loaded}>{(life) => <Life life={life} id={id} />}</Wait>
    </>
  );
}

function Life({ life, id }: { life: AgentLife; id: string }): JSX.Element {
  const { run } = useRun();
  const more = (path: string, name: string) => <a class="more" href={href(["run", id, path], { agent: life.agent })}>{name}</a>;
  return (
    <>
      <Facts>
        <Fact name="cohort"><Text>{life.cohort}</Text></Fact>
        {life.alive === false && <Fact name="alive">no</Fact>}
        {attributes(life).map(([name, value]) => <Fact key={name} name={plain(name)}>{cellText(value)}</Fact>)}
        {run.has.calls && <Fact name="cost">{life.calls.length > 0 ? money(run.cost_usd === null ? null : life.cost_usd) : "no calls"}</Fact>}
      </Facts>
      {life.tell && <p class="note"><Text>{life.tell}</Text></p>}
      <div class="two">
        <States states={life.states ?? []} />
        <Section title="Actions">{(life.acts ?? []).length === 0 ? <Empty>No recorded actions.</Empty> : <Acts acts={life.acts} />}</Section>
      </div>
      <Saw agent={life.agent} />
      {life.neighbours?.length > 0 && (
        <Section title="Neighbours" note={count(life.neighbours.length, "tie")}>
          <p class="neighbours">{life.neighbours.map((other) => <a key={other} href={href(["run", id, "agents", other])}>{other}</a>)}</p>
        </Section>
      )}
      {run.has.messages && (
        <div class="two">
          <Messages title="Received" messages={life.received ?? []} id={id} />
          <Messages title="Sent" messages={life.sent ?? []} id={id} />
        </div>
      )}
      {run.has.messages && <p>{more("influence", "Whom this agent influenced, and who influenced it")}</p>}
      {run.has.posts && <p>{more("feed", "The feed of this agent")}</p>}
      {run.has.calls && (
        <Section title="Calls" note={life.calls.length > 0 ? <>{count(life.calls.length, "call")}. {more("calls", "With filters")}</> : undefined}>
          {life.calls.length === 0 ? <Empty>This agent asked no model.</Empty> : <div class="calls">{life.calls.map((call) => <CallCard key={keyOf(call)} call={call} run={id} hideAgent />)}</div>}
        </Section>
      )}
      {run.has.calls && <Interview agent={life.agent} />}
    </>
  );
}

/** Without the ends of what the states show in full. */
function attributes(life: AgentLife): [string, Cell][] {
  const timed = new Set((life.states ?? []).flatMap((state) => Object.keys(state)));
  return Object.entries(life.attributes ?? {}).filter(([name]) => !(/\.(first|last)$/.test(name) && timed.has(name.replace(/\.(first|last)$/, ""))));
}

function Messages({ title, messages, id }: { title: string; messages: Message[]; id: string }): JSX.Element {
  return (
    <Section title={title} note={count(messages.length, "message")}>
      {messages.length === 0 ? <Empty>None.</Empty> : <MessageList messages={messages} run={id} />}
    </Section>
  );
}

function States({ states }: { states: Record<string, Cell>[] }): JSX.Element {
  const names = [...new Set(states.flatMap((state) => Object.keys(state)))].filter((name) => name !== "round" && name !== "agent");
  if (states.length === 0 || names.length === 0) return <Section title="States"><Empty>No recorded states.</Empty></Section>;
  const first = states[0]!;
  const last = states.at(-1)!;
  return (
    <Section title="States" note={`From ${roundName(Number(first.round))} to ${roundName(Number(last.round))}.`}>
      <Scroll label="States over rounds">
        <table>
          <thead><tr><th>attribute</th><th class="right">first</th><th>over rounds</th><th class="right">last</th></tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td>{plain(name)}</td>
                <td class="right nums">{cellText(first[name] ?? null)}</td>
                <td><Course name={name} states={states} /></td>
                <td class="right nums">{cellText(last[name] ?? null)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  );
}

/** Numbers as a line; words as the rounds at which they changed. */
function Course({ name, states }: { name: string; states: Record<string, Cell>[] }): JSX.Element {
  const values = states.map((state) => state[name] ?? null);
  if (values.every((value) => value === null || typeof value === "number")) return <Spark values={values as (number | null)[]} label={name} />;
  const changes = states.filter((state, i) => i > 0 && state[name] !== states[i - 1]![name]);
  if (changes.length === 0) return <span class="quiet">unchanged</span>;
  const said = changes.slice(0, 4).map((state) => `${plain(state[name])} in ${roundName(Number(state.round))}`).join(", ");
  return <span class="quiet">{said}{changes.length > 4 && `, ${changes.length - 4} more`}</span>;
}

export function Acts({ acts }: { acts: Act[] }): JSX.Element {
  const [all, setAll] = useState(false);
  const shown = all ? acts : acts.slice(-12);
  const texts = acts.some(({ text }) => text);
  return (
    <>
      <Scroll label="Actions">
        <table>
          <thead><tr><th class="right">round</th><th>action</th><th class="right">value</th>{texts && <th>text</th>}</tr></thead>
          <tbody>
            {shown.map((act, i) => (
              <tr key={i}>
                <td class="right nums">{num(act.round)}</td>
                <td><Text>{act.kind}</Text></td>
                <td class="right nums">{act.value === null || act.value === undefined ? "" : cellText(act.value)}</td>
                {texts && <td class="long">{act.text ? <Text>{act.text}</Text> : ""}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown.length < acts.length && <button type="button" onClick={() => setAll(true)}>Show all {num(acts.length)}</button>}
    </>
  );
}

/** What the agent was shown in a round. The server computes the run again up to there, so only on demand. */
function Saw({ agent }: { agent: number }): JSX.Element {
  const { id, round, run } = useRun();
  const [at, setAt] = useState(Math.max(0, round));
  const [state, setState] = useState<{ busy: boolean; seen: Observation | null; error: string | null }>({ busy: false, seen: null, error: null });
  const look = async () => {
    setState({ busy: true, seen: null, error: null });
    try {
      setState({ busy: false, seen: await get<Observation>(ofRun(id, `agents/${agent}/observation`), { round: at }), error: null });
    } catch (fault) {
      setState({ busy: false, seen: null, error: words(fault) });
    }
  };
  return (
    <Section title="What it saw">
      <form class="inline" onSubmit={(event) => {
        event.preventDefault();
        void look();
      }}>
        <label class="field narrow">
          <span>In round</span>
          <input type="number" required min={0} max={Math.max(0, run.rounds)} value={at} onInput={(event) => setAt(event.currentTarget.valueAsNumber || 0)} />
        </label>
        <button type="submit" disabled={state.busy}>{state.busy ? "Looking …" : "Show"}</button>
      </form>
      <div role="status">
        {state.error && <p class="note bad"><Text>{state.error}</Text></p>}
        {state.seen && <Seen seen={state.seen} />}
      </div>
    </Section>
  );
}

function Seen({ seen }: { seen: Observation }): JSX.Element {
  const facts = [...Object.entries(seen.numbers ?? {}), ...Object.entries(seen.texts ?? {})];
  const tables = Object.entries(seen.tables ?? {});
  if (facts.length + tables.length === 0) return <Empty>Nothing.</Empty>;
  return (
    <>
      {facts.length > 0 && <Facts>{facts.map(([name, value]) => <Fact key={name} name={plain(name)}>{cellText(value)}</Fact>)}</Facts>}
      {tables.map(([name, rows]) => <SeenTable key={name} name={name} rows={rows} />)}
    </>
  );
}

function SeenTable({ name, rows }: { name: string; rows: Record<string, Cell>[] }): JSX.Element {
  const columns = Object.keys(rows[0] ?? {});
  if (columns.length === 0) return <Empty>{plain(name)}: no rows.</Empty>;
  return (
    <Scroll label={plain(name)}>
      <table>
        <caption>{plain(name)}</caption>
        <thead><tr>{columns.map((column) => <th key={column}>{plain(column)}</th>)}</tr></thead>
        <tbody>{rows.map((row, i) => <tr key={i}>{columns.map((column) => <td key={column} class="nums">{cellText(row[column] ?? null)}</td>)}</tr>)}</tbody>
      </table>
    </Scroll>
  );
}

interface Said {
  answer: string;
  model: string | null;
  cost_usd: number | null;
}

/** A question of the reader's own, answered from what the agent knew at a round. The run does not change. */
function Interview({ agent }: { agent: number }): JSX.Element {
  const { id, round, following } = useRun();
  const [question, setQuestion] = useState("");
  const [state, setState] = useState<{ busy: boolean; said: Said | null; error: string | null }>({ busy: false, said: null, error: null });
  const ask = async () => {
    setState({ busy: true, said: null, error: null });
    try {
      setState({ busy: false, said: await post<Said>(ofRun(id, "interview"), { agent, question, ...(following ? {} : { at: round + 1 }) }), error: null });
    } catch (fault) {
      setState({ busy: false, said: null, error: words(fault) });
    }
  };
  return (
    <Section title="Interview" note={`Ask this agent as it was after ${roundName(Math.max(0, round))}. The run does not change; a real model costs money.`}>
      <form class="order-form" onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}>
        <label class="field wide">
          <span>Question</span>
          <textarea rows={2} required value={question} onInput={(event) => setQuestion(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={state.busy}>{state.busy ? "Asking …" : "Ask"}</button>
      </form>
      <div role="status">
        {state.error && <p class="note bad"><Text>{state.error}</Text></p>}
        {state.said && <div class="turn reply"><p class="role"><Text>{state.said.model}</Text>, {money(state.said.cost_usd)}</p><p><Text>{state.said.answer}</Text></p></div>}
      </div>
    </Section>
  );
}
