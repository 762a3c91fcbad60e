// The HTTP API, as types and as calls. Whatever the server leaves out becomes null or empty here, so that views need not ask.

export type Status = "running" | "paused" | "done" | "stopped" | "budget" | "damaged";
export type Cell = number | string | boolean | null;

export interface RunHead {
  id: string;
  name: string;
  kind: "society" | "evaluation" | "sweep";
  status: Status;
  rounds: number;
  rounds_planned: number | null;
  agents: number | null;
  seed: number | string | null;
  simulated: boolean;
  calls: number;
  cost_usd: number | null;
  tokens: number;
  started_ms: number | null;
  changed_ms: number | null;
  alarms: number;
  waiting: string | null;
  parent: string | null;
  folder: string | null;
}

export interface ColumnInfo {
  name: string;
  doc: string | null;
  low: number | null;
  high: number | null;
  kind: "number" | "category";
  words?: string[] | null;
  timed: boolean;
}

export interface TableColumn {
  name: string;
  kind: string;
  doc?: string | null;
  words?: string[] | null;
}

export interface TableInfo {
  name: string;
  doc: string | null;
  rows: number | null;
  columns: TableColumn[];
}

export interface Space {
  kind: "grid" | "plane";
  width: number;
  height: number;
  x: string;
  y: string;
  /** A column of angles, or the two columns of a direction. */
  heading?: string | [string, string] | null;
}

export interface Has {
  messages: boolean;
  calls: boolean;
  items: boolean;
  posts: boolean;
  acts: boolean;
  votes: boolean;
}

export interface Run extends RunHead {
  scenario: unknown;
  world: string | null;
  world_doc: string | null;
  policies: string[];
  cohorts: string[];
  models: string[];
  digest: string | null;
  build: string | null;
  totals: {
    calls: number;
    answers: number;
    tokens_in: number;
    tokens_out: number;
    tokens_cached: number;
    cost_usd: number | null;
    unpriced: boolean;
  } | null;
  limits: { usd: number | null; tokens: number | null; calls: number | null; seconds: number | null } | null;
  health: { round: number | null; what: string }[];
  orders: { round: number; at_ms: number | null; what: string }[];
  changes: { round: number; what: string }[];
  fork: { of: string; at: number } | null;
  tables: TableInfo[];
  columns: ColumnInfo[];
  space: Space | null;
  states_every: number | null;
  network: { ties: number; directed: boolean } | null;
  has: Has;
  question_count: number;
}

export interface Metric {
  name: string;
  doc: string | null;
  points: [number, number | null][];
}

export interface AgentRows {
  round: number;
  state_round: number;
  total: number;
  matched: number;
  columns: string[];
  rows: Cell[][];
}

export interface Message {
  item?: number | null;
  round: number;
  from: number | null;
  to: number | null;
  channel: string | null;
  value: Cell;
  text: string | null;
}

export interface Call {
  item?: number | null;
  round: number;
  agent: number | null;
  asker: string | null;
  n: number;
  purpose: string | null;
  model: string | null;
  outcome: string | null;
  resolution: string | null;
  attempt: number | null;
  tokens_in: number | null;
  tokens_out: number | null;
  cost_usd: number | null;
  latency_ms: number | null;
  waited_ms: number | null;
  retries: number | null;
  shared: boolean | null;
  prompt: string | null;
  /** The prompt by message. */
  messages?: { role: string; text: string }[] | null;
  /** Why the reply does not fit what was wanted. */
  unfit?: string | null;
  answer: string | null;
}

export interface Act {
  round: number;
  agent?: number;
  kind: string;
  value?: Cell;
  text?: string | null;
}

export interface AgentLife {
  agent: number;
  cohort: string | null;
  alive: boolean | null;
  attributes: Record<string, Cell>;
  states: Record<string, Cell>[];
  acts: Act[];
  received: Message[];
  sent: Message[];
  calls: Call[];
  cost_usd: number | null;
  neighbours: number[];
  tell: string | null;
}

export interface Network {
  nodes: number[];
  edges: [number, number][];
  sampled: boolean;
  total_ties: number;
}

export interface Calls {
  total: number;
  calls: Call[];
  purposes: { name: string; count: number }[];
  outcomes: { name: string; count: number }[];
}

export interface TablePage {
  total: number;
  columns: (string | TableColumn)[];
  rows: Cell[][];
}

export interface Item {
  item: number;
  question: string | null;
  answer: string | null;
  gold: string | null;
  correct: boolean | null;
  rounds: number | null;
  asks: number | null;
  extracted: Cell;
  note: string | null;
}

export interface Items {
  total: number;
  accuracy: { mean: number; low: number | null; high: number | null; n: number } | null;
  items: Item[];
  /** All items, with those that the filter leaves out. */
  of?: number;
}

export interface Conversation {
  of?: number;
  item: Item;
  team: { agent: number; name: string | null; model: string | null }[];
  acts: Act[];
  messages: Message[];
  calls: Call[];
}

export interface Post {
  post: number;
  round: number;
  author: number;
  parent: number | null;
  root: number | null;
  text: string | null;
  stance: number | null;
  likes: number | null;
  shares: number | null;
  comments: number | null;
  depth: number | null;
}

export interface Feed {
  agent: number;
  round: number;
  posts: Post[];
  known: boolean;
  note: string | null;
}

export interface Influence {
  from: { agent: number; messages: number; acts_after: number }[];
  to: { agent: number; messages: number; acts_after: number }[];
}

export interface Live {
  status: Status;
  round: number;
  rounds_planned: number | null;
  calls: number;
  cost_usd: number | null;
  tokens: number;
  waiting: string | null;
  metrics?: Record<string, number | null>;
}

export interface Diff {
  same_until: number | null;
  first_different: number | null;
  scenario: { path: string; a: unknown; b: unknown }[];
  metrics: { name: string; a: [number, number | null][]; b: [number, number | null][] }[];
}

export interface System {
  name: string;
  title: string | null;
  claims: { id: string; text: string; verdict: string; detail: string | null }[];
}

export interface Observation {
  agent: number;
  round: number;
  numbers: Record<string, Cell>;
  texts: Record<string, string>;
  tables: Record<string, Record<string, Cell>[]>;
}

export type Form =
  | { kind: "number"; low?: number | null; high?: number | null; whole?: boolean }
  | { kind: "choice"; options: string[] }
  | { kind: "text" }
  | { kind: "list"; of: Form; least?: number | null; most?: number | null }
  | { kind: "record"; fields: { name: string; form: Form }[] };

export interface Question {
  id: string;
  agent: number | null;
  text: string;
  form: Form;
  who?: string | null;
  default?: Cell;
  form_words?: string | null;
  asked_ms: number | null;
  until_ms: number | null;
}

export type Query = Record<string, string | number | boolean | null | undefined | string[]>;

const TOKEN = "polity-token";
let token = "";

/** Takes the token out of the address, so that it does not stay in the history or in a copied link. */
export function takeToken(): void {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  try {
    if (found?.[1]) {
      sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
      history.replaceState(null, "", location.pathname + location.search + "#/");
    }
    token = sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    token = found?.[1] ?? "";
  }
}

function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => params.append(name, one));
    else if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return `api/${path}${text ? `?${text}` : ""}`;
}

/** The path of something of a run. */
export const ofRun = (id: string, rest = ""): string => `runs/${encodeURIComponent(id)}${rest && `/${rest}`}`;

async function send(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  let reply: Response;
  try {
    reply = await fetch(url, { ...init, headers });
  } catch (fault) {
    if (fault instanceof DOMException && fault.name === "AbortError") throw fault;
    throw new Error("The server does not answer. Is `polity view` still running?");
  }
  if (!reply.ok) throw new Error(await complaint(reply));
  return reply;
}

async function complaint(reply: Response): Promise<string> {
  try {
    const body = (await reply.json()) as { error?: string; words?: string };
    const said = body.error ?? body.words;
    if (said) return said;
  } catch {
    // No JSON: the status has to do.
  }
  if (reply.status === 401) return "The server wants its token. Open the address that `polity view` printed.";
  if (reply.status === 404) return "The server has nothing under this address.";
  return `The server answered with status ${reply.status}.`;
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  const reply = await send(address(path, query), signal ? { signal } : {});
  return (await reply.json()) as T;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const reply = await send(address(path), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  return (text ? JSON.parse(text) : {}) as T;
}

export interface Column {
  values: Float32Array;
  stateRound: number;
}

export async function getColumn(id: string, name: string, round: number): Promise<Column> {
  const reply = await send(address(ofRun(id, "column"), { name, round }));
  const told = Number(reply.headers.get("x-state-round") ?? round);
  return { values: new Float32Array(await reply.arrayBuffer()), stateRound: Number.isFinite(told) ? told : round };
}

const NOTHING: Has = { messages: false, calls: false, items: false, posts: false, acts: false, votes: false };

/** Fills what an older or a smaller run lacks. */
export function complete(run: Run): Run {
  return {
    ...run,
    policies: run.policies ?? [],
    cohorts: run.cohorts ?? [],
    models: run.models ?? [],
    health: run.health ?? [],
    orders: run.orders ?? [],
    changes: run.changes ?? [],
    tables: run.tables ?? [],
    columns: run.columns ?? [],
    has: { ...NOTHING, ...run.has },
    question_count: run.question_count ?? 0,
  };
}

/** Reads the events of a run until it ends or `signal` aborts. Connects again when the connection breaks. */
export async function follow(id: string, on: (live: Live) => void, end: () => void, signal: AbortSignal): Promise<void> {
  let wait = 1000;
  while (!signal.aborted) {
    try {
      const reply = await send(address(ofRun(id, "events")), { signal });
      if (!reply.body) return;
      wait = 1000;
      if (await readEvents(reply.body, on)) {
        end();
        return;
      }
    } catch {
      if (signal.aborted) return;
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 15_000);
  }
}

/** Returns true when the run has ended. */
async function readEvents(body: ReadableStream<Uint8Array>, on: (live: Live) => void): Promise<boolean> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const kind = /^event: ?(.*)$/m.exec(block)?.[1]?.trim();
      const data = [...block.matchAll(/^data: ?(.*)$/gm)].map((line) => line[1]).join("\n");
      if (kind === "end") return true;
      if (kind === "status" && data) on(JSON.parse(data) as Live);
    }
  }
}
