// Questions to a person who plays one of the agents.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ofRun, post, type Form, type Question } from "../api";
import { ago, num, when } from "../format";
import { AgentLink, Empty, Wait } from "../parts";
import { underWay, useLoad, useRun, words } from "../state";
import { Block, plain, Text } from "../text";

const POLL_MS = 3000;

export function Questions(): JSX.Element {
  const { id, run } = useRun();
  const [version, setVersion] = useState(0);
  const [done, setDone] = useState<string | null>(null);
  const loaded = useLoad<{ questions: Question[] }>(ofRun(id, "questions"), {}, version);
  useEffect(() => {
    const timer = setInterval(() => setVersion((n) => n + 1), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <h1>Questions to you</h1>
      <p class="note">Agents played by people. Others go on meanwhile; the round ends when all have answered.</p>
      <p class="said" role="status">{done ?? ""}</p>
      <Wait of={{ ...loaded, loading: false }}>
        {({ questions }) => questions.length === 0
          ? <Empty>{underWay(run) ? "No question is open. New ones appear here by themselves." : "No question is open."}</Empty>
          : <>{questions.map((question) => <Card key={question.id} question={question} answered={() => {
              setDone("Your answer was taken.");
              setVersion((n) => n + 1);
            }} />)}</>}
      </Wait>
    </>
  );
}

type Value = number | string | unknown[] | Record<string, unknown> | null;

function Card({ question, answered }: { question: Question; answered: () => void }): JSX.Element {
  const { id } = useRun();
  const [value, setValue] = useState<Value>(null);
  const [state, setState] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  const send = async () => {
    setState({ busy: true, error: null });
    try {
      await post(ofRun(id, `questions/${encodeURIComponent(question.id)}`), { answer: value });
      answered();
    } catch (fault) {
      setState({ busy: false, error: words(fault) });
    }
  };
  return (
    <form class="card question-card" onSubmit={(event) => {
      event.preventDefault();
      void send();
    }}>
      <div class="post-head">
        <AgentLink run={id} agent={question.agent} />
        {question.who && <span class="quiet">to <Text>{question.who}</Text></span>}
        <span class="quiet">asked {ago(question.asked_ms)}</span>
        {question.until_ms !== null && <span class="quiet">answer until {when(question.until_ms)}</span>}
      </div>
      <Block class="question-text">{question.text}</Block>
      {question.form_words && <p class="note">Wanted: <Text>{question.form_words}</Text>{question.default !== null && question.default !== undefined && <>. Without an answer: <Text>{question.default}</Text></>}</p>}
      <Input form={question.form} name="Your answer" value={value} onValue={setValue} />
      {state.error && <p class="note bad" role="alert"><Text>{state.error}</Text></p>}
      <button type="submit" class="main" disabled={state.busy}>{state.busy ? "Sending …" : "Answer"}</button>
    </form>
  );
}

interface InputProps {
  form: Form;
  name: string;
  value: unknown;
  onValue: (value: Value) => void;
}

function Input({ form, name, value, onValue }: InputProps): JSX.Element {
  switch (form.kind) {
    case "number": return <NumberInput form={form} name={name} value={value} onValue={onValue} />;
    case "choice":
      return (
        <fieldset class="options">
          <legend>{plain(name)}</legend>
          {form.options.map((option) => (
            <label key={option}><input type="radio" name={name} required checked={value === option} onChange={() => onValue(option)} /> {plain(option)}</label>
          ))}
        </fieldset>
      );
    case "list": return <ListInput form={form} name={name} value={value} onValue={onValue} />;
    case "record": {
      const record = (value ?? {}) as Record<string, unknown>;
      return (
        <fieldset>
          <legend>{plain(name)}</legend>
          {form.fields.map((field) => <Input key={field.name} form={field.form} name={field.name} value={record[field.name]} onValue={(next) => onValue({ ...record, [field.name]: next })} />)}
        </fieldset>
      );
    }
    default:
      return (
        <label class="field wide">
          <span>{plain(name)}</span>
          <textarea rows={3} required value={(value as string) ?? ""} onInput={(event) => onValue(event.currentTarget.value)} />
        </label>
      );
  }
}

function ListInput({ form, name, value, onValue }: InputProps & { form: Extract<Form, { kind: "list" }> }): JSX.Element {
  const [text, setText] = useState(Array.isArray(value) ? value.join("\n") : "");
  return (
    <label class="field wide">
      <span>{plain(name)}, one a line</span>
      <textarea rows={4} required value={text} onInput={(event) => {
        setText(event.currentTarget.value);
        const lines = event.currentTarget.value.split("\n").map((line) => line.trim()).filter(Boolean);
        onValue(form.of.kind === "number" ? lines.map(Number) : lines);
      }} />
    </label>
  );
}

function NumberInput({ form, name, value, onValue }: InputProps & { form: Extract<Form, { kind: "number" }> }): JSX.Element {
  const { low, high } = form;
  const known = low !== null && low !== undefined && high !== null && high !== undefined;
  return (
    <label class="field">
      <span>{plain(name)}{known && `, ${num(low)} to ${num(high)}`}</span>
      <input type="number" step={form.whole ? 1 : "any"} required min={low ?? undefined} max={high ?? undefined} value={value === null || value === undefined ? "" : String(value)}
        onInput={(event) => onValue(event.currentTarget.value === "" ? null : event.currentTarget.valueAsNumber)} />
    </label>
  );
}
