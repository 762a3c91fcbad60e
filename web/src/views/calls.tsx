// What models were asked, and what they answered.
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { ofRun, type Call, type Calls } from "../api";
import { duration, money, num, roundName } from "../format";
import { AgentLink, Choice, Empty, Fact, Facts, Field, Pager, Wait } from "../parts";
import { numberOf, patch, useRoute } from "../route";
import { OpenRun, useLoad, useRun } from "../state";
import { Block, plain, Text } from "../text";

const PAGE = 50;

export function CallList(): JSX.Element {
  const { id, run, version } = useRun();
  const { query } = useRoute();
  const offset = numberOf(query.offset) ?? 0;
  const { round: _, ...rest } = query;
  const loaded = useLoad<Calls>(ofRun(id, "calls"), {
    round: rest.of, agent: rest.agent, item: rest.item, purpose: rest.purpose, outcome: rest.outcome, model: rest.model, text: rest.text, limit: PAGE, offset,
  }, version);
  const set = (name: string) => (value: string) => patch({ [name]: value, offset: null });
  const counted = (all: { name: string; count: number }[] | undefined, chosen: string | undefined): [string, string][] => {
    const known = (all ?? []).map(({ name, count }): [string, string] => [name, `${plain(name)} (${num(count)})`]);
    if (chosen && !known.some(([name]) => name === chosen)) known.push([chosen, plain(chosen)]);
    return [["", "any"], ...known];
  };
  return (
    <>
      <h1>Calls</h1>
      <div class="filters">
        <Field label="Words in prompt or answer" type="search" value={query.text ?? ""} onValue={set("text")} wide />
        <Field label="Round" type="number" min={0} value={query.of ?? ""} onValue={set("of")} />
        <Field label="Agent" type="number" min={0} value={query.agent ?? ""} onValue={set("agent")} />
        {run.has.items && <Field label="Item" type="number" min={0} value={query.item ?? ""} onValue={set("item")} />}
        <Choice label="Purpose" value={query.purpose ?? ""} options={counted(loaded.data?.purposes, query.purpose)} onValue={set("purpose")} />
        <Choice label="Outcome" value={query.outcome ?? ""} options={counted(loaded.data?.outcomes, query.outcome)} onValue={set("outcome")} />
        {run.models.length > 1 && <Choice label="Model" value={query.model ?? ""} options={[["", "any"], ...run.models.map((model): [string, string] => [model, plain(model)])]} onValue={set("model")} />}
      </div>
      <Wait of={loaded}>
        {({ calls, total }) => calls.length === 0
          ? <Empty>No call fits these filters.</Empty>
          : (
            <>
              <div class="calls">{calls.map((call) => <CallCard key={keyOf(call)} call={call} run={id} />)}</div>
              <Pager total={total} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
            </>
          )}
      </Wait>
    </>
  );
}

export const keyOf = (call: Call): string => `${call.item ?? ""}-${call.round}-${call.agent}-${call.n}-${call.attempt}`;

interface CardProps {
  call: Call;
  run: string;
  /** Views of one agent or item leave out what all their calls share. */
  hideAgent?: boolean;
}

const ROLES = new Set(["system", "user", "assistant"]);
const GOOD = new Set(["reply"]);

/** One call, folded. Its texts enter the page only when it is opened: they can be long, and there can be hundreds. */
export function CallCard({ call: recorded, run, hideAgent = false }: CardProps): JSX.Element {
  const of = useContext(OpenRun)?.run;
  // In a run without known prices a recorded 0 is no price.
  const call = of?.cost_usd === null && !recorded.cost_usd ? { ...recorded, cost_usd: null } : recorded;
  const [open, setOpen] = useState(false);
  return (
    <details class="call" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="call-where nums">
          {call.item !== null && call.item !== undefined && !hideAgent && <>item {num(call.item)}, </>}{roundName(call.round)}{!hideAgent && call.agent !== null && <>, agent {call.agent}</>}
        </span>
        <span class="call-purpose"><Text>{call.purpose}</Text></span>
        <span class="call-answer"><Text>{firstWords(call.answer)}</Text></span>
        <span class="call-cost nums">{call.shared ? "shared" : money(call.cost_usd)}</span>
        <span class={`chip small ${GOOD.has(call.outcome ?? "") ? "plain" : "alarm"}`}><Text>{outcomeName(call)}</Text></span>
      </summary>
      {open && <CallBody call={call} run={run} />}
    </details>
  );
}

/** The field `answer` first, as it is what one looks for; the reasons after it. */
function firstWords(answer: string | null): string {
  if (answer === null) return "no answer";
  const fields = record(answer);
  const text = fields === null ? answer : fields.toSorted(([a], [b]) => Number(b === "answer") - Number(a === "answer"))
    .map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value))).join(" – ");
  return text.replace(/\s+/g, " ").slice(0, 160);
}

/** `fit` says nothing that `reply` does not. */
const outcomeName = (call: Call): string => [call.outcome, call.resolution === "fit" ? null : call.resolution].filter(Boolean).join(", ");

function CallBody({ call, run }: { call: Call; run: string }): JSX.Element {
  return (
    <div class="call-body">
      <Facts>
        <Fact name="asker"><AgentLink run={run} agent={call.agent} />{call.asker && <> (<Text>{call.asker}</Text>)</>}</Fact>
        <Fact name="model"><Text>{call.model}</Text></Fact>
        <Fact name="tokens in, out"><span class="nums">{num(call.tokens_in)}, {num(call.tokens_out)}</span></Fact>
        <Fact name="cost">{money(call.cost_usd)}{call.shared && " (paid by another call with the same question)"}</Fact>
        <Fact name="time">{duration(call.latency_ms)}{(call.waited_ms ?? 0) > 0 && <>, after waiting {duration(call.waited_ms)}</>}</Fact>
        {(call.retries ?? 0) > 0 && <Fact name="retries">{num(call.retries)}</Fact>}
        {(call.attempt ?? 0) > 0 && <Fact name="attempt">{num(call.attempt)}</Fact>}
      </Facts>
      {(call.messages ?? prompts(call.prompt)).map(({ role, text }, i) => (
        <div class={`turn ${ROLES.has(role) ? role : ""}`} key={i}>
          <p class="role">{plain(role)}</p>
          <Block>{text}</Block>
        </div>
      ))}
      <div class="turn reply">
        <p class="role">answer</p>
        {call.unfit && <p class="note bad">This does not fit what was wanted: <Text>{call.unfit}</Text></p>}
        {call.answer === null ? <p class="quiet">There was no answer: <Text>{outcomeName(call)}</Text>.</p> : <Answer text={call.answer} />}
      </div>
    </div>
  );
}

/** A recorded prompt has each message under its role in square brackets. Text that holds such a line itself is cut there, too. */
export function prompts(prompt: string | null): { role: string; text: string }[] {
  if (prompt === null) return [{ role: "prompt", text: "It was not recorded." }];
  const parts = prompt.split(/(?:^|\n\n)\[(system|user|assistant|tool)\]\n/);
  if (parts.length < 3) return [{ role: "prompt", text: prompt }];
  const out: { role: string; text: string }[] = [];
  if (parts[0]) out.push({ role: "prompt", text: parts[0] });
  for (let i = 1; i + 1 < parts.length; i += 2) out.push({ role: parts[i]!, text: parts[i + 1]! });
  return out;
}

export function record(text: string): [string, unknown][] | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : null;
  } catch {
    return null;
  }
}

/** An answer in fields is shown by field; as it was written below. */
export function Answer({ text }: { text: string }): JSX.Element {
  const fields = record(text);
  if (!fields) return <Block>{text}</Block>;
  return (
    <>
      <dl class="fields">
        {fields.map(([name, value]) => (
          <div key={name}>
            <dt>{plain(name)}</dt>
            <dd><Block>{typeof value === "string" ? value : JSON.stringify(value)}</Block></dd>
          </div>
        ))}
      </dl>
      <details class="raw"><summary>as written</summary><Block class="mono">{text}</Block></details>
    </>
  );
}
