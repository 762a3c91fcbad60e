// One run at a glance: what it is, how far it is, its world and its metrics.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ofRun, type Items, type Metric, type Run, type RunHead } from "../api";
import { World } from "../canvas/world";
import { grouped } from "../charts/group";
import { SeriesChart, type Mark } from "../charts/series";
import { count, duration, money, num, percent, roundName, when } from "../format";
import { Empty, Fact, Facts, Progress, Scroll, Section, StatusChip, Wait, Waiting } from "../parts";
import { href } from "../route";
import { underWay, useLoad, useRun } from "../state";
import { plain, Text } from "../text";
import { Steering } from "./steering";

export function Overview(): JSX.Element {
  const { run } = useRun();
  return (
    <>
      <Headline run={run} />
      <Steering />
      {run.kind === "evaluation" && <Accuracy run={run} />}
      {run.kind === "sweep" && <Members run={run} />}
      <div class={run.columns.length > 0 ? "overview" : ""}>
        {run.columns.length > 0 && <World />}
        <div class="beside">
          <Metrics />
          <Events run={run} />
        </div>
      </div>
      <About run={run} />
    </>
  );
}

function describe(run: Run): string {
  const scenario = run.scenario as { description?: unknown } | null;
  return typeof scenario?.description === "string" ? scenario.description : run.world_doc ?? "";
}

function Headline({ run }: { run: Run }): JSX.Element {
  const description = describe(run);
  return (
    <div class="headline">
      {description && <p class="lead"><Text>{description}</Text></p>}
      {run.status !== "done" && <Progress run={run} />}
      {underWay(run) && <p class="waiting" role="status">{run.waiting && <Waiting reason={run.waiting} />}</p>}
      <Facts>
        {!!run.agents && <Fact name="agents">{num(run.agents)}</Fact>}
        {run.status === "done" && run.rounds > 0 && <Fact name="rounds">{num(run.rounds)}</Fact>}
        {run.world && <Fact name="world"><Text>{run.world}</Text></Fact>}
        {run.models.length > 0 && <Fact name={run.models.length === 1 ? "model" : "models"}><Text>{run.models.join(", ")}</Text></Fact>}
        {run.has.calls && <Fact name="calls">{num(run.calls)}</Fact>}
        {run.has.calls && <Fact name="tokens">{num(run.tokens)}</Fact>}
        {run.has.calls && <Fact name="cost">{cost(run)}</Fact>}
        <Fact name="seed">{plain(run.seed)}</Fact>
        {run.started_ms !== null && run.changed_ms !== null && (
          <Fact name={underWay(run) ? "started" : "took"}>{underWay(run) ? when(run.started_ms) : duration(run.changed_ms - run.started_ms)}</Fact>
        )}
      </Facts>
    </div>
  );
}

function cost(run: Run): string {
  const spent = money(run.cost_usd, run.totals?.unpriced ?? false);
  const limit = run.limits?.usd;
  const real = run.simulated && run.cost_usd !== null ? `${spent} (simulated)` : spent;
  return limit === null || limit === undefined ? real : `${real}; limit ${money(limit)}`;
}

export function marksOf(run: Run): Mark[] {
  return [
    ...run.changes.map(({ round, what }): Mark => ({ round, what, kind: "change" })),
    ...run.orders.map(({ round, what }): Mark => ({ round, what, kind: "order" })),
    ...(run.fork ? [{ round: run.fork.at, what: `fork of ${run.fork.of}`, kind: "fork" as const }] : []),
  ];
}

function Metrics(): JSX.Element {
  const { run, id, version, round, setRound } = useRun();
  const loaded = useLoad<{ metrics: Metric[] }>(ofRun(id, "metrics"), {}, version);
  const marks = useMemo(() => marksOf(run), [run.changes, run.orders, run.fork]);
  return (
    <section class="metrics" aria-label="Metrics">
      <div class="world-bar"><h2>Metrics</h2><span class="quiet">values at {roundName(Math.max(0, round))}, or under the pointer</span></div>
      <Wait of={{ ...loaded, loading: false }}>{({ metrics }) => <Charts metrics={metrics} marks={marks} round={round} pick={setRound} id={id} />}</Wait>
    </section>
  );
}

interface ChartsProps {
  metrics: Metric[];
  marks: Mark[];
  round: number;
  pick: (round: number) => void;
  id: string;
}

function Charts({ metrics, marks, round, pick, id }: ChartsProps): JSX.Element {
  const { groups, constant } = useMemo(() => grouped(metrics), [metrics]);
  if (metrics.length === 0) return <Empty>No metrics yet. They appear when the first round is over. A scenario names them under <code>metrics</code>.</Empty>;
  return (
    <>
      <div class="charts">
        {groups.map((group) => <SeriesChart key={group.name} group={group} marks={marks} round={round} pick={pick} together={id} />)}
      </div>
      {constant.length > 0 && (
        <p class="note">The same in all rounds: {constant.map(({ name, value }) => `${plain(name)} ${num(value)}`).join(", ")}.</p>
      )}
    </>
  );
}

function Events({ run }: { run: Run }): JSX.Element | null {
  const marks = marksOf(run);
  if (marks.length === 0 && run.health.length === 0) return null;
  return (
    <>
      {run.health.length > 0 && (
        <Section title="Alarms">
          <ul class="events">
            {run.health.map((alarm, i) => <li key={i}><span class="at nums">{alarm.round === null ? "run" : roundName(alarm.round)}</span><Text>{alarm.what}</Text></li>)}
          </ul>
        </Section>
      )}
      {marks.length > 0 && (
        <Section title="Changes and orders" note="Vertical lines in the charts.">
          <ul class="events">
            {marks.map((mark, i) => (
              <li key={i}><span class="at nums"><i class={`mark ${mark.kind}`} />{roundName(mark.round)}</span><Text>{mark.what}</Text></li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Accuracy({ run }: { run: Run }): JSX.Element {
  const { id, version } = useRun();
  const loaded = useLoad<Items>(ofRun(id, "items"), { limit: 1 }, version);
  return (
    <section aria-label="Accuracy">
      <Wait of={{ ...loaded, loading: false }}>
        {({ accuracy }) => <AccuracyBar accuracy={accuracy} simulated={run.simulated} />}
      </Wait>
      <p><a class="more" href={href(["run", id, "items"])}>All items and their conversations</a></p>
    </section>
  );
}

export function AccuracyBar({ accuracy, simulated }: { accuracy: Items["accuracy"]; simulated: boolean }): JSX.Element {
  if (!accuracy) return <Empty>No item has been scored yet.</Empty>;
  const { mean, low, high, n } = accuracy;
  return (
    <div class="accuracy">
      <div class="accuracy-number">{percent(mean)}</div>
      <div class="accuracy-words">
        <b>right</b> of {count(n, "item")}; {low !== null && high !== null ? `95% interval ${percent(low)} to ${percent(high)}` : "too few for an interval"}
        {simulated && ". The models are simulated, so this says nothing about language models."}
      </div>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" class="interval" role="img" aria-label={`Accuracy ${percent(mean)}`}>
        <rect x="0" y="4.2" width="100" height="1.6" class="track" />
        {low !== null && high !== null && <Band low={low} high={high} />}
        <rect x={mean * 100 - 0.3} y="1" width="0.6" height="8" class="point" />
      </svg>
      <div class="ends nums"><span>0%</span><span>50%</span><span>100%</span></div>
    </div>
  );
}

/** Intervals by Student's t may reach beyond 0 and 1, which an accuracy cannot. */
function Band({ low, high }: { low: number; high: number }): JSX.Element {
  const [from, to] = [Math.max(0, low), Math.min(1, high)];
  return <rect x={from * 100} y="2.6" width={Math.max(0.4, (to - from) * 100)} height="4.8" class="band" />;
}

/** A sweep's runs are runs of their own, below its folder. */
function Members({ run }: { run: Run }): JSX.Element {
  const loaded = useLoad<{ runs: RunHead[] }>("runs");
  return (
    <Section title="Runs of this sweep">
      <Wait of={loaded}>
        {({ runs }) => {
          const members = runs.filter((one) => one.id !== run.id && (one.parent === run.id || one.id.startsWith(`${run.id}~`)));
          if (members.length === 0) return <Empty>None of its runs is in the folder that is served.</Empty>;
          return (
            <Scroll label="Runs of this sweep">
              <table>
                <thead><tr><th>run</th><th>status</th><th class="right">rounds</th><th class="right">seed</th><th class="right">cost</th></tr></thead>
                <tbody>
                  {members.map((one) => (
                    <tr key={one.id}>
                      <td><a href={href(["run", one.id])}><Text>{one.id.slice(run.id.length + 1) || one.name}</Text></a></td>
                      <td><StatusChip status={one.status} /></td>
                      <td class="right nums">{num(one.rounds)}</td>
                      <td class="right nums">{plain(one.seed)}</td>
                      <td class="right nums">{one.calls > 0 ? money(one.cost_usd) : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          );
        }}
      </Wait>
    </Section>
  );
}

function About({ run }: { run: Run }): JSX.Element {
  return (
    <details class="about">
      <summary>Scenario, digest and build</summary>
      <Facts>
        {run.digest && <Fact name="digest"><code><Text>{run.digest}</Text></code></Fact>}
        {run.build && <Fact name="build"><Text>{run.build}</Text></Fact>}
        {run.folder && <Fact name="folder"><code><Text>{run.folder}</Text></code></Fact>}
        {run.policies.length > 0 && <Fact name="policies"><Text>{run.policies.join(", ")}</Text></Fact>}
        {run.cohorts.length > 0 && <Fact name="cohorts"><Text>{run.cohorts.join(", ")}</Text></Fact>}
        {run.fork && <Fact name="fork of"><Text>{run.fork.of}</Text> from {roundName(run.fork.at)}</Fact>}
        {run.totals && <Fact name="tokens in, out, cached"><span class="nums">{num(run.totals.tokens_in)}, {num(run.totals.tokens_out)}, {num(run.totals.tokens_cached)}</span></Fact>}
      </Facts>
      {run.world_doc && <p><Text>{run.world_doc}</Text></p>}
      <pre class="code" tabIndex={0} aria-label="Scenario">{plain(JSON.stringify(run.scenario ?? null, null, 2))}</pre>
    </details>
  );
}
