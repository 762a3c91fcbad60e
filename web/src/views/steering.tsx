// Orders to a run under way. What the server says to an order is shown as it says it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ofRun, post, type Run } from "../api";
import { underWay, useRun, words } from "../state";
import { plain, Text } from "../text";

interface Reply {
  words?: string;
  refused?: boolean;
}

type Form = "set" | "limits" | "message" | null;

export function Steering(): JSX.Element | null {
  const { run, id, reload } = useRun();
  const [said, setSaid] = useState<{ text: string; bad: boolean } | null>(null);
  const [busy, setBusy] = useState(false);
  const [form, setForm] = useState<Form>(null);
  const continuable = run.status === "stopped" || run.status === "budget";
  if (!underWay(run) && !continuable) return null;

  const tell = async (path: string, body: unknown, fallback: string) => {
    setBusy(true);
    try {
      const reply = await post<Reply>(ofRun(id, path), body);
      setSaid({ text: reply.words || fallback, bad: reply.refused ?? false });
      reload();
    } catch (fault) {
      setSaid({ text: words(fault), bad: true });
    } finally {
      setBusy(false);
    }
  };
  const order = (body: Record<string, unknown>) => void tell("orders", body, "The run has taken the order.");
  const toggle = (next: Form) => setForm(form === next ? null : next);

  return (
    <section class="steering" aria-label="Steer the run">
      <div class="buttons">
        {continuable && <button type="button" class="main" disabled={busy} onClick={() => void tell("go", {}, "The run goes on.")}>Go on</button>}
        {run.status === "running" && <button type="button" disabled={busy} onClick={() => order({ order: "pause" })}>Pause</button>}
        {run.status === "paused" && <button type="button" class="main" disabled={busy} onClick={() => order({ order: "resume" })}>Resume</button>}
        {run.status === "paused" && <button type="button" disabled={busy} onClick={() => order({ order: "step", rounds: 1 })}>One round</button>}
        {underWay(run) && (
          <>
            <button type="button" disabled={busy} aria-expanded={form === "set"} onClick={() => toggle("set")}>Set a parameter</button>
            {run.world !== null && <button type="button" disabled={busy} aria-expanded={form === "message"} onClick={() => toggle("message")}>Send a message</button>}
            {run.has.calls && <button type="button" disabled={busy} aria-expanded={form === "limits"} onClick={() => toggle("limits")}>Change limits</button>}
            <button type="button" class="quiet-button" disabled={busy} onClick={() => {
              if (confirm("Stop this run? It is saved and can go on later.")) order({ order: "stop" });
            }}>Stop</button>
          </>
        )}
        <span class={said?.bad ? "said bad" : "said"} role="status">{said && <Text>{said.text}</Text>}</span>
      </div>
      {form === "set" && <SetForm run={run} busy={busy} order={order} close={() => setForm(null)} />}
      {form === "message" && <MessageForm busy={busy} order={order} close={() => setForm(null)} />}
      {form === "limits" && <LimitsForm busy={busy} order={order} close={() => setForm(null)} />}
    </section>
  );
}

interface FormProps {
  busy: boolean;
  order: (body: Record<string, unknown>) => void;
  close: () => void;
}

/** A form that opened has the focus; one that closes gives it back to its button. */
function useFocusInside(): { current: HTMLFormElement | null } {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    form.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return form;
}

const onEscape = (close: () => void) => (event: KeyboardEvent) => {
  if (event.key === "Escape") close();
};

/** Every single value of a scenario by its path, to choose from. */
export function paths(value: unknown, at = "", out: [string, unknown][] = []): [string, unknown][] {
  if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) paths(inner, at ? `${at}.${key}` : key, out);
  } else if (at) {
    out.push([at, value]);
  }
  return out;
}

function typed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function SetForm({ run, busy, order, close }: FormProps & { run: Run }): JSX.Element {
  const form = useFocusInside();
  const [path, setPath] = useState("");
  const [value, setValue] = useState("");
  const known = paths(run.scenario);
  const now = known.find(([name]) => name === path);
  return (
    <form ref={form} class="order-form" onKeyDown={onEscape(close)} onSubmit={(event) => {
      event.preventDefault();
      order({ order: "set", path: path.trim(), value: typed(value.trim()) });
    }}>
      <label class="field wide">
        <span>Parameter, as in the scenario</span>
        <input list="paths" value={path} required placeholder="world.fraction" onInput={(event) => setPath(event.currentTarget.value)} />
        <datalist id="paths">{known.map(([name]) => <option key={name} value={name} />)}</datalist>
      </label>
      <label class="field medium">
        <span>New value{now ? `, in the scenario ${plain(now[1])}` : ""}</span>
        <input value={value} required onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main" disabled={busy}>Set it</button>
    </form>
  );
}

const LIMITS: [name: string, label: string, step: string][] = [
  ["max_cost", "Dollars in all", "any"],
  ["max_calls", "Calls in all", "1"],
  ["max_connections", "Calls at once", "1"],
];

/** What is left empty stays as it is. */
function LimitsForm({ busy, order, close }: FormProps): JSX.Element {
  const form = useFocusInside();
  const [values, setValues] = useState<Record<string, string>>({});
  const stated = Object.entries(values).filter(([, value]) => value !== "");
  return (
    <form ref={form} class="order-form" onKeyDown={onEscape(close)} onSubmit={(event) => {
      event.preventDefault();
      order({ order: "limits", ...Object.fromEntries(stated.map(([name, value]) => [name, Number(value)])) });
    }}>
      {LIMITS.map(([name, label, step]) => (
        <label class="field" key={name}>
          <span>{label}</span>
          <input type="number" min={0} step={step} value={values[name] ?? ""} onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })} />
        </label>
      ))}
      <button type="submit" class="main" disabled={busy || stated.length === 0}>Set them</button>
    </form>
  );
}

/** A text in the name of an agent. Without readers, the neighbours of the agent read it. */
function MessageForm({ busy, order, close }: FormProps): JSX.Element {
  const form = useFocusInside();
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [text, setText] = useState("");
  const readers = to.split(/[\s,]+/).filter((word) => word !== "").map(Number);
  return (
    <form ref={form} class="order-form" onKeyDown={onEscape(close)} onSubmit={(event) => {
      event.preventDefault();
      order({ order: "message", from: Number(from), text, ...(readers.length > 0 ? { to: readers } : {}) });
    }}>
      <label class="field">
        <span>From agent</span>
        <input type="number" min={0} step="1" required value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
      </label>
      <label class="field medium">
        <span>To agents (its neighbours if empty)</span>
        <input value={to} pattern="[0-9,\s]*" placeholder="3, 4" onInput={(event) => setTo(event.currentTarget.value)} />
      </label>
      <label class="field wide">
        <span>Text, read in the next round</span>
        <input value={text} required onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main" disabled={busy}>Send it</button>
    </form>
  );
}
