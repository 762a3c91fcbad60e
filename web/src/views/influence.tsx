// Who influenced whom: messages that an agent was shown, and how often it acted after them.
import type { JSX } from "preact";
import { ofRun, type Influence } from "../api";
import { num, percent } from "../format";
import { Empty, Field, Scroll, Section, Wait } from "../parts";
import { href, patch, useRoute } from "../route";
import { useLoad, useRun } from "../state";
import { plain } from "../text";

const ROWS = 20;
const DRAWN = 12;

type Row = Influence["from"][number];

export function InfluenceView(): JSX.Element {
  const { id, version } = useRun();
  const { query } = useRoute();
  const agent = query.agent ?? "";
  const chosen = /^\d+$/.test(agent);
  const loaded = useLoad<Influence>(ofRun(id, "influence"), { agent: chosen ? agent : null }, version);
  return (
    <>
      <div class="title-row">
        <h1>Influence</h1>
        <nav class="steps" aria-label="More on messages"><a href={href(["run", id, "messages"], { agent })}>Messages</a></nav>
      </div>
      <p class="note">What an agent was shown, and how often it acted in the round after. An action after a message need not be due to it.</p>
      <div class="filters">
        <Field label="Agent" type="number" min={0} value={agent} onValue={(value) => patch({ agent: value })} />
      </div>
      <Wait of={loaded}>{(found) => (chosen ? <OfOne agent={agent} found={found} run={id} /> : <OfAll found={found} run={id} />)}</Wait>
    </>
  );
}

function OfOne({ agent, found: { from, to }, run }: { agent: string; found: Influence; run: string }): JSX.Element {
  if (from.length + to.length === 0) return <Empty>Agent {plain(agent)} has neither reached others nor been reached.</Empty>;
  return (
    <>
      <Flow agent={agent} from={from} to={to} />
      <div class="two">
        <Side title={`Who reached agent ${agent}`} rows={from} run={run} />
        <Side title={`Whom agent ${agent} reached`} rows={to} run={run} />
      </div>
    </>
  );
}

function OfAll({ found: { from, to }, run }: { found: Influence; run: string }): JSX.Element {
  if (from.length + to.length === 0) return <Empty>No exposure was recorded. Enter an agent to look closer.</Empty>;
  return (
    <div class="two">
      <Side title="Who reached others most" rows={from} run={run} />
      <Side title="Who was reached most" rows={to} run={run} />
    </div>
  );
}

function Side({ title, rows, run }: { title: string; rows: Row[]; run: string }): JSX.Element {
  return (
    <Section title={title}>
      {rows.length === 0 ? <Empty>Nobody.</Empty> : (
        <Scroll label={title}>
          <table>
            <thead><tr><th>agent</th><th class="right">messages</th><th class="right">actions after</th><th class="right">share</th></tr></thead>
            <tbody>
              {rows.slice(0, ROWS).map((row) => (
                <tr key={row.agent}>
                  <td><a href={href(["run", run, "influence"], { agent: row.agent })}>agent {row.agent}</a></td>
                  <td class="right nums">{num(row.messages)}</td>
                  <td class="right nums">{num(row.acts_after)}</td>
                  <td class="right nums">{percent(row.messages > 0 ? row.acts_after / row.messages : null)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Section>
  );
}

/** The same as the tables, as bands: as wide as the messages, and darker the more often an action followed. */
function Flow({ agent, from, to }: { agent: string; from: Row[]; to: Row[] }): JSX.Element {
  const left = from.slice(0, DRAWN);
  const right = to.slice(0, DRAWN);
  const rows = Math.max(left.length, right.length, 2);
  const height = rows * 26 + 20;
  const most = Math.max(1, ...[...left, ...right].map((row) => row.messages));
  const middle = height / 2;
  const y = (i: number, n: number) => middle + (i - (n - 1) / 2) * 26;
  const band = (row: Row, at: number, side: number) => {
    const x = side < 0 ? 150 : 550;
    const end = side < 0 ? 318 : 382;
    const strength = row.messages > 0 ? Math.min(1, row.acts_after / row.messages) : 0;
    return (
      <path key={`${side} ${row.agent}`} d={`M${x} ${at}C${(x + end) / 2} ${at} ${(x + end) / 2} ${middle} ${end} ${middle}`}
        fill="none" class="band" style={{ strokeWidth: 1.5 + (row.messages / most) * 12, opacity: 0.25 + 0.65 * strength }} />
    );
  };
  const name = (row: Row, at: number, side: number) => (
    <text key={`name ${side} ${row.agent}`} x={side < 0 ? 142 : 558} y={at + 4} text-anchor={side < 0 ? "end" : "start"}>agent {row.agent}</text>
  );
  return (
    <figure class="flow">
      <svg viewBox={`0 0 700 ${height}`} role="img" aria-label={`Agent ${agent}: ${from.length} agents reached it, it reached ${to.length}. The tables below have the numbers.`}>
        {left.map((row, i) => band(row, y(i, left.length), -1))}
        {right.map((row, i) => band(row, y(i, right.length), 1))}
        {left.map((row, i) => name(row, y(i, left.length), -1))}
        {right.map((row, i) => name(row, y(i, right.length), 1))}
        <circle cx="350" cy={middle} r="32" />
        <text x="350" y={middle + 5} text-anchor="middle" class="centre">{agent}</text>
      </svg>
      <figcaption>Left: who reached it. Right: whom it reached. Wide: many messages. Dark: actions often followed.</figcaption>
    </figure>
  );
}
