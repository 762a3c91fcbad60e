// All runs of the folder that is served, newest first.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RunHead } from "../api";
import { ago, count, money, num, when } from "../format";
import { Choice, Empty, Field, Progress, Simulated, StatusChip, Wait, Waiting } from "../parts";
import { href, patch, useRoute } from "../route";
import { underWay, useLoad } from "../state";
import { plain, Text } from "../text";

const POLL_MS = 3000;

export function Runs(): JSX.Element {
  const [version, setVersion] = useState(0);
  const loaded = useLoad<{ runs: RunHead[] }>("runs", {}, version);
  const active = loaded.data?.runs.some(underWay) ?? false;
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => setVersion((n) => n + 1), POLL_MS);
    return () => clearInterval(timer);
  }, [active]);
  return (
    <>
      <h1>Runs</h1>
      <Wait of={{ ...loaded, loading: loaded.loading && !active }}>{({ runs }) => <List runs={runs} />}</Wait>
    </>
  );
}

const KINDS: Record<RunHead["kind"], string> = { society: "society", evaluation: "evaluation", sweep: "sweep" };

function List({ runs }: { runs: RunHead[] }): JSX.Element {
  const { query } = useRoute();
  const text = (query.text ?? "").toLowerCase();
  const found = runs.filter((run) =>
    (!text || `${run.name} ${run.id}`.toLowerCase().includes(text))
    && (!query.status || run.status === query.status)
    && (!query.kind || run.kind === query.kind));
  if (runs.length === 0) {
    return <Empty>There are no runs in this folder yet. Start one with <code>polity run scenarios/guess-average.yaml</code>.</Empty>;
  }
  return (
    <>
      {runs.length > 1 && (
        <div class="filters">
          <Field label="Name" value={query.text ?? ""} onValue={(value) => patch({ text: value })} type="search" />
          <Choice label="Status" value={query.status ?? ""} onValue={(value) => patch({ status: value })}
            options={[["", "any"], ["running", "under way"], ["paused", "paused"], ["done", "finished"], ["stopped", "stopped"], ["budget", "stopped at its budget"]]} />
          <Choice label="Kind" value={query.kind ?? ""} onValue={(value) => patch({ kind: value })}
            options={[["", "any"], ["society", "society"], ["evaluation", "evaluation"], ["sweep", "sweep"]]} />
          <span class="found" role="status">{count(found.length, "run")}</span>
        </div>
      )}
      {found.length === 0 ? <Empty>No run fits these filters.</Empty> : <ul class="cards runs">{found.map((run) => <Card key={run.id} run={run} />)}</ul>}
    </>
  );
}

function Card({ run }: { run: RunHead }): JSX.Element {
  return (
    <li class="card run">
      <div class="run-head">
        <a class="run-name" href={href(["run", run.id])}><Text>{run.name}</Text></a>
        <StatusChip status={run.status} />
        <Simulated run={run} />
        <span class="chip plain">{KINDS[run.kind] ?? run.kind}</span>
        {run.alarms > 0 && <span class="chip alarm">{count(run.alarms, "alarm")}</span>}
      </div>
      {run.status !== "done" && run.status !== "damaged" && <Progress run={run} />}
      <p class="run-facts">
        {!!run.agents && <span>{count(run.agents, "agent")}</span>}
        {run.status === "done" && run.rounds > 0 && <span>{count(run.rounds, "round")}</span>}
        <span>seed {plain(run.seed)}</span>
        {run.calls > 0 && <span>{count(run.calls, "call")}</span>}
        {run.calls > 0 && <span>{money(run.cost_usd)}</span>}
        {run.tokens > 0 && <span>{num(run.tokens)} tokens</span>}
        {run.parent && <span>from <Text>{run.parent.split("/").at(-1)}</Text></span>}
        <span title={when(run.started_ms)}>started {ago(run.started_ms)}</span>
        <span class="run-id"><Text>{run.id}</Text></span>
      </p>
      {run.waiting && <p class="waiting">{run.status === "damaged" ? <Text>{run.waiting}</Text> : <Waiting reason={run.waiting} />}</p>}
    </li>
  );
}
