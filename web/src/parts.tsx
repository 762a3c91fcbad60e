// Small pieces that many views use.
import type { ComponentChildren, JSX } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { RunHead, Status } from "./api";
import { num } from "./format";
import { href } from "./route";
import { OpenRun, type Loaded } from "./state";
import { Text } from "./text";

const STATUS: Record<Status, string> = {
  running: "under way",
  paused: "paused",
  done: "finished",
  stopped: "stopped",
  budget: "stopped at its budget",
  damaged: "damaged",
};

export const StatusChip = ({ status }: { status: Status }): JSX.Element => (
  <span class={`chip status-${status}`}>{STATUS[status] ?? status}</span>
);

export const Simulated = ({ run }: { run: { simulated: boolean } }): JSX.Element | null =>
  run.simulated ? (
    <span class="chip simulated" title="The models of this run are simulated. Their answers say nothing about language models.">
      simulated models
    </span>
  ) : null;

export function Progress({ run }: { run: RunHead }): JSX.Element {
  const planned = run.rounds_planned ?? 0;
  const share = planned > 0 ? Math.min(1, run.rounds / planned) : run.status === "done" ? 1 : 0;
  const said = planned > 0 ? `${num(run.rounds)} of ${num(planned)} rounds` : `${num(run.rounds)} rounds`;
  return (
    <div class="progress-line">
      <div class={`progress ${run.status}`} role="progressbar" aria-label="rounds" aria-valuemin={0} aria-valuemax={planned || run.rounds || 1}
        aria-valuenow={run.rounds} aria-valuetext={said}>
        <div style={{ width: `${share * 100}%` }} />
      </div>
      <span class="nums">{said}</span>
    </div>
  );
}

/** Why nothing moves. Some reasons say already that the run waits. */
export const Waiting = ({ reason }: { reason: string }): JSX.Element => (
  <>{/^waiting\b/i.test(reason) ? "" : "Waiting: "}<Text>{/^waiting\b/i.test(reason) ? `W${reason.slice(1)}` : reason}</Text></>
);

export const Empty = ({ children }: { children: ComponentChildren }): JSX.Element => <p class="empty">{children}</p>;

export function Problem({ error, retry }: { error: string; retry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <span><Text>{error}</Text></span>
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** What stands where data will stand: its place while it loads, what went wrong, or the data. */
export function Wait<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }): JSX.Element {
  if (of.data) {
    return (
      <div class={of.loading ? "stale" : ""} aria-busy={of.loading}>
        {of.error && <Problem error={of.error} retry={of.reload} />}
        {children(of.data)}
      </div>
    );
  }
  if (of.error) return <Problem error={of.error} retry={of.reload} />;
  return <p class="loading" role="status">Loading …</p>;
}

export const Facts = ({ children }: { children: ComponentChildren }): JSX.Element => <dl class="facts">{children}</dl>;

export const Fact = ({ name, children }: { name: string; children: ComponentChildren }): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** A table that scrolls by itself where it is too wide, so that the page never does. */
export const Scroll = ({ label, children }: { label: string; children: ComponentChildren }): JSX.Element => (
  <div class="scroll" role="region" aria-label={label} tabIndex={0}>
    {children}
  </div>
);

export function Pager({ total, offset, limit, to }: { total: number; offset: number; limit: number; to: (offset: number) => void }): JSX.Element {
  const last = Math.min(total, offset + limit);
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={offset <= 0} onClick={() => to(Math.max(0, offset - limit))}>Back</button>
      <span class="nums" role="status">
        {total === 0 ? "nothing found" : `${num(offset + 1)} to ${num(last)} of ${num(total)}`}
      </span>
      <button type="button" disabled={last >= total} onClick={() => to(offset + limit)}>Next</button>
    </nav>
  );
}

export function Section({ title, note, id, children }: { title: string; note?: ComponentChildren; id?: string; children: ComponentChildren }): JSX.Element {
  return (
    <section id={id}>
      <h2>{title}</h2>
      {note && <p class="note">{note}</p>}
      {children}
    </section>
  );
}

/** Leads to an agent's life. Members of a team in an evaluation have none; what they were asked is the nearest to it. */
export function AgentLink({ run, agent }: { run: string; agent: number | null | undefined }): JSX.Element {
  const open = useContext(OpenRun)?.run;
  if (agent === null || agent === undefined) return <span class="quiet">{open?.kind === "evaluation" ? "the method" : "the world"}</span>;
  if (open?.kind === "evaluation") return <a href={href(["run", run, "calls"], { agent })}>member {agent}</a>;
  return <a href={href(["run", run, "agents", agent])}>agent {agent}</a>;
}

interface FieldProps {
  label: string;
  value: string;
  onValue: (value: string) => void;
  type?: "text" | "number" | "search";
  placeholder?: string;
  list?: string;
  wide?: boolean;
  min?: number;
}

/** A labelled field that reports what was typed once the typing rests. */
export function Field({ label, value, onValue, type = "text", placeholder, list, wide, min }: FieldProps): JSX.Element {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => onValue(typed), 250);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label class={wide ? "field wide" : "field"}>
      <span>{label}</span>
      <input type={type} value={typed} placeholder={placeholder} list={list} min={min} inputMode={type === "number" ? "numeric" : undefined}
        onInput={(event) => setTyped(event.currentTarget.value)} />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: [value: string, name: string][];
  onValue: (value: string) => void;
}

export const Choice = ({ label, value, options, onValue }: ChoiceProps): JSX.Element => (
  <label class="field">
    <span>{label}</span>
    <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
      {options.map(([key, name]) => <option key={key} value={key} selected={key === value}>{name}</option>)}
    </select>
  </label>
);

/** A choice among few, all visible. */
export function Segments({ label, value, options, onValue }: ChoiceProps): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([key, name]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onValue(key)}>{name}</button>
      ))}
    </div>
  );
}
