// Messages between agents.
import type { JSX } from "preact";
import { ofRun, type Message } from "../api";
import { num } from "../format";
import { AgentLink, Empty, Field, Pager, Wait } from "../parts";
import { href, numberOf, patch, useRoute } from "../route";
import { useLoad, useRun } from "../state";
import { Text } from "../text";
import { cellText } from "./agents";

const PAGE = 100;

export function Messages(): JSX.Element {
  const { id, run, version } = useRun();
  const { query } = useRoute();
  const offset = numberOf(query.offset) ?? 0;
  const loaded = useLoad<{ total: number; messages: Message[] }>(ofRun(id, "messages"), {
    round: query.of, from: query.from, to: query.to, agent: query.agent, limit: PAGE, offset,
  }, version);
  const set = (name: string) => (value: string) => patch({ [name]: value, offset: null });
  return (
    <>
      <div class="title-row">
        <h1>Messages</h1>
        {run.kind === "society" && <nav class="steps" aria-label="More on messages"><a href={href(["run", id, "influence"], { agent: query.agent ?? query.from ?? query.to })}>Who influenced whom</a></nav>}
      </div>
      <div class="filters">
        <Field label="Round" type="number" min={0} value={query.of ?? ""} onValue={set("of")} />
        <Field label="From agent" type="number" min={0} value={query.from ?? ""} onValue={set("from")} />
        <Field label="To agent" type="number" min={0} value={query.to ?? ""} onValue={set("to")} />
        <Field label="From or to" type="number" min={0} value={query.agent ?? ""} onValue={set("agent")} />
      </div>
      <Wait of={loaded}>
        {({ messages, total }) => messages.length === 0
          ? <Empty>No message fits these filters.</Empty>
          : (
            <>
              <MessageList messages={messages} run={id} />
              <Pager total={total} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
            </>
          )}
      </Wait>
    </>
  );
}

export function MessageList({ messages, run }: { messages: Message[]; run: string }): JSX.Element {
  return (
    <ol class="messages">
      {messages.map((message, i) => (
        <li key={i}>
          <div class="message-head">
            <span class="at nums">{message.item !== null && message.item !== undefined && <><a href={href(["run", run, "items", message.item])}>item {message.item}</a>, </>}round {num(message.round)}</span>
            <AgentLink run={run} agent={message.from} />
            <span aria-label="to">→</span>
            <AgentLink run={run} agent={message.to} />
            {message.channel && <span class="chip small plain"><Text>{message.channel}</Text></span>}
            {message.value !== null && message.value !== undefined && <span class="nums value">{cellText(message.value)}</span>}
          </div>
          {message.text && <p><Text>{message.text}</Text></p>}
        </li>
      ))}
    </ol>
  );
}
