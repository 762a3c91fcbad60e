// The picture of the world: where agents are, who is tied to whom, or how an attribute is spread; over rounds.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, ofRun, type ColumnInfo, type Network, type Run } from "../api";
import { counted, Distribution } from "../charts/bars";
import { num, roundName } from "../format";
import { categoryScale, numberScale, type Scale } from "../palette";
import { Choice, Empty, Problem, Segments } from "../parts";
import { go } from "../route";
import { underWay, useRun, useTheme, useWidth, words } from "../state";
import { plain } from "../text";
import { Columns, picture, range, type Picture } from "./columns";
import { OverRounds } from "./rounds";
import { begin, settle, type Layout } from "./layout";
import { paintGrid, paintNetwork, paintPlane, type Painted } from "./paint";

type Mode = "map" | "network" | "spread" | "rounds";

const stores = new Map<string, Columns>();

function useColumns(run: Run): Columns {
  const store = stores.get(run.id) ?? new Columns(run);
  stores.set(run.id, store);
  store.update(run);
  return store;
}

function modes(run: Run): [Mode, string][] {
  const found: [Mode, string][] = [];
  if (run.space) found.push(["map", run.space.kind === "grid" ? "Grid" : "Plane"]);
  if (run.network) found.push(["network", "Network"]);
  found.push(["spread", "Distribution"]);
  if (run.columns.some(({ timed }) => timed) && run.rounds > 1) found.push(["rounds", "Over rounds"]);
  return found;
}

/** What tells most about the agents: something that changes and is no coordinate. */
function firstChoice(run: Run): string | null {
  const places = run.space ? [run.space.x, run.space.y, run.space.heading].flat() : [];
  const usable = run.columns.filter(({ name }) => !places.includes(name));
  const best = usable.find(({ timed, kind }) => timed && kind === "number") ?? usable.find(({ timed }) => timed);
  // On a map one looks for groups first.
  const group = usable.find(({ kind, name, words }) => kind === "category" && name !== "alive" && !name.startsWith("action.") && (words?.length ?? 0) > 1);
  if (run.space && group) return group.name;
  return (best ?? usable[0] ?? run.columns[0])?.name ?? null;
}

/** Ends of scales without declared ends grow with what was seen, so that a colour keeps its meaning while the slider moves. */
const seen = new Map<string, [number, number]>();

const declared = ({ low, high }: ColumnInfo): boolean => typeof low === "number" && typeof high === "number";

function scaleOf(run: Run, column: ColumnInfo, values: Float32Array, dark: boolean, fit: boolean): Scale {
  if (column.kind === "category") return categoryScale(column.words ?? [], dark);
  const key = `${run.id} ${column.name}`;
  let [low, high] = seen.get(key) ?? [Infinity, -Infinity];
  if (fit || !declared(column)) {
    const [from, to] = range(values);
    [low, high] = [Math.min(low, from), Math.max(high, to)];
    seen.set(key, [low, high]);
  }
  return fit ? numberScale(low, high, dark) : numberScale(column.low ?? low, column.high ?? high, dark);
}

export function World(): JSX.Element | null {
  const { run, round, setRound } = useRun();
  const columns = useColumns(run);
  const [mode, setMode] = useState<Mode>(() => modes(run)[0]![0]);
  const [by, setBy] = useState(() => firstChoice(run));
  const [fit, setFit] = useState(false);
  const column = run.columns.find(({ name }) => name === by) ?? null;
  const { shown, at, error } = usePicture(run, columns, column?.name ?? null, round);
  const [dark] = useTheme();
  const scale = useMemo(
    () => (shown && column ? scaleOf(run, column, shown.colour.values, dark, fit) : null),
    [shown, column?.name, dark, fit],
  );
  const counts = useMemo(() => (shown && scale ? counted(shown.colour.values, scale) : null), [shown, scale]);
  if (!column) return null;
  const choices = modes(run);
  return (
    <section class="world" aria-label="Picture of the world">
      <div class="world-bar">
        {choices.length > 1 ? <Segments label="Kind of picture" value={mode} options={choices} onValue={(next) => setMode(next as Mode)} /> : <h2>Distribution</h2>}
        <Choice label="Colour" value={column.name} options={run.columns.map(({ name }) => [name, plain(name)])} onValue={setBy} />
      </div>
      {error && <Problem error={error} />}
      {mode === "spread" && <div class="stage spread">{counts && scale && <Distribution counts={counts} scale={scale} name={column.name} tall />}</div>}
      {mode === "rounds" && (scale && column.timed ? <OverRounds run={run} columns={columns} column={column} scale={scale} round={round} setRound={setRound} /> : <div class="stage" style={{ aspectRatio: "1.1" }}>{!column.timed && <p class="stage-note">{plain(column.name)} is the same in all rounds.</p>}</div>)}
      {(mode === "map" || mode === "network") && <Stage mode={mode} picture={shown} scale={scale} column={column} />}
      {moves(run, column) && (
        <Rounds first={-1} last={run.rounds - 1} round={round} setRound={setRound} ready={at === round} stateRound={shown && column.timed ? shown.colour.stateRound : null} />
      )}
      {mode !== "spread" && counts && scale && (
        <div class="legend">
          <div class="legend-name" title={column.doc ?? undefined}>{plain(column.name)}</div>
          <Distribution counts={counts} scale={scale} name={column.name} tall={false} />
        </div>
      )}
      {declared(column) && column.kind === "number" && (
        <label class="check"><input type="checkbox" checked={fit} onChange={(event) => setFit(event.currentTarget.checked)} /> Fit the scale to the data</label>
      )}
    </section>
  );
}

/** Whether anything in the picture is known by round. */
function moves(run: Run, column: ColumnInfo): boolean {
  const timed = (name: string) => run.columns.find((one) => one.name === name)?.timed ?? true;
  return column.timed || (run.space !== null && (timed(run.space.x) || timed(run.space.y)));
}

interface Shown {
  shown: Picture | null;
  /** The round that `shown` was asked for. */
  at: number | null;
  error: string | null;
}

/** Loads the picture of a round and then, quietly, those of its neighbours. */
function usePicture(run: Run, columns: Columns, by: string | null, round: number): Shown {
  const [state, setState] = useState<Shown>({ shown: null, at: null, error: null });
  useEffect(() => {
    if (by === null) return undefined;
    let current = true;
    picture(columns, run, by, round).then(
      (shown) => {
        if (!current) return;
        setState({ shown, at: round, error: null });
        for (const next of [round + 1, round - 1]) {
          if (next >= -1 && next < run.rounds) void picture(columns, run, by, next).catch(() => undefined);
        }
      },
      (fault: unknown) => current && setState((old) => ({ ...old, error: words(fault) })),
    );
    return () => {
      current = false;
    };
  }, [run.id, by, round, run.space?.x]);
  return state;
}

interface StageProps {
  mode: Mode;
  picture: Picture | null;
  scale: Scale | null;
  column: ColumnInfo;
}

function Stage({ mode, picture: shown, scale, column }: StageProps): JSX.Element {
  const { run, id } = useRun();
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const painted = useRef<Painted | null>(null);
  const [dark] = useTheme();
  const { layout, step, error } = useLayout(run, mode === "network");
  const [tip, setTip] = useState<{ x: number; y: number; agent: number } | null>(null);
  const { space } = run;
  const aspect = mode === "map" && space ? Math.min(2, Math.max(0.6, space.width / (space.height || 1))) : 1.1;

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || !shown || !scale || width === 0) return;
    const ratio = Math.min(2, devicePixelRatio);
    const [w, h] = [Math.round(width * ratio), Math.round((width / aspect) * ratio)];
    if (canvas.current.width !== w || canvas.current.height !== h) {
      canvas.current.width = w;
      canvas.current.height = h;
    }
    const began = performance.now();
    if (mode === "network") painted.current = layout ? paintNetwork(context, layout, shown, scale, dark) : null;
    else if (space?.kind === "grid") painted.current = paintGrid(context, space, shown, scale);
    else if (space) painted.current = paintPlane(context, space, shown, scale);
    canvas.current.dataset.paintMs = (performance.now() - began).toFixed(1);
    canvas.current.dataset.stateRound = String(shown.colour.stateRound);
  }, [shown, scale, width, mode, layout, step, dark, aspect]);

  const find = (event: { offsetX: number; offsetY: number }): number => {
    const target = canvas.current;
    if (!target || !painted.current) return -1;
    const ratio = target.width / (target.clientWidth || 1);
    return painted.current.at(event.offsetX * ratio, event.offsetY * ratio);
  };
  const onMove = (event: { offsetX: number; offsetY: number }) => {
    const agent = find(event);
    setTip(agent < 0 ? null : { x: event.offsetX, y: event.offsetY, agent });
  };
  const what = mode === "network" ? "network of agents" : `${space?.kind ?? ""} with agents`;
  return (
    <div class="stage" ref={box} style={{ aspectRatio: String(aspect) }}>
      <canvas ref={canvas} role="img" aria-label={`Picture of the ${what}, coloured by ${plain(column.name)}. The list of agents has the same values.`}
        class={tip ? "over" : ""} onPointerMove={onMove} onPointerLeave={() => setTip(null)}
        onClick={(event) => {
          // What the tip names is what opens, even if the click lands half a pixel beside it.
          const agent = tip?.agent ?? find(event);
          if (agent >= 0) go(["run", id, "agents", agent]);
        }} />
      {tip && shown && (
        <div class={tip.x > width / 2 ? "tip left" : "tip"} style={{ left: `${tip.x}px`, top: `${tip.y}px` }}>
          <b>agent {tip.agent}</b>
          <span>{plain(column.name)}: {valueName(column, shown.colour.values[tip.agent])}</span>
        </div>
      )}
      {error && <Problem error={error} />}
      {mode === "network" && layout && run.network && (
        <p class="stage-note">{layoutNote(layout)}</p>
      )}
      {mode === "network" && !layout && !error && <p class="stage-note">Placing agents …</p>}
      {shown && shown.colour.values.length === 0 && <Empty>This run has no recorded states of agents.</Empty>}
    </div>
  );
}

function layoutNote({ nodes, edges, total }: Layout): string {
  return edges.length < total
    ? `${num(edges.length)} of ${num(total)} ties, around the best connected agents`
    : `${num(nodes.length)} agents, ${num(total)} ties`;
}

export function valueName(column: ColumnInfo, value: number | undefined): string {
  if (value === undefined || value !== value) return "unknown";
  return column.kind === "category" ? plain(column.words?.[value] ?? value) : num(value);
}

const layouts = new Map<string, Layout>();

function useLayout(run: Run, wanted: boolean): { layout: Layout | null; step: number; error: string | null } {
  const [layout, setLayout] = useState<Layout | null>(() => layouts.get(run.id) ?? null);
  const [step, setStep] = useState(0);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (!wanted || layouts.has(run.id)) return undefined;
    const abort = new AbortController();
    get<Network>(ofRun(run.id, "network"), { limit: 20_000 }, abort.signal)
      .then(async (network) => {
        const made = begin(network);
        setLayout(made);
        // Who asked for less motion sees the settled picture only.
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        await settle(made, () => !still && setStep((n) => n + 1), abort.signal);
        if (abort.signal.aborted) return;
        if (!underWay(run)) layouts.set(run.id, made);
        setStep((n) => n + 1);
      })
      .catch((fault: unknown) => !abort.signal.aborted && setError(words(fault)));
    return () => abort.abort();
  }, [run.id, wanted]);
  return { layout, step, error };
}

interface RoundsProps {
  first: number;
  last: number;
  round: number;
  setRound: (round: number) => void;
  ready: boolean;
  stateRound: number | null;
}

const FRAME_MS = 220;

/** The slider over rounds. While it plays, a round waits until the one before is on the screen. */
export function Rounds({ first, last, round, setRound, ready, stateRound }: RoundsProps): JSX.Element {
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing || !ready) return undefined;
    if (round >= last) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => setRound(round + 1), FRAME_MS);
    return () => clearTimeout(timer);
  }, [playing, ready, round, last]);
  const press = () => {
    if (!playing && round >= last) setRound(first);
    setPlaying(!playing);
  };
  const older = stateRound !== null && stateRound >= 0 && ready && stateRound !== round;
  const note = older ? `State of ${roundName(stateRound)}, the last recorded before.` : "";
  return (
    <div class="rounds">
      <button type="button" class="play" aria-label={playing ? "Stop playing" : "Play the rounds"} onClick={press} disabled={last <= first}>
        <svg viewBox="0 0 16 16" aria-hidden="true">{playing ? <path d="M3 2h4v12H3zM9 2h4v12H9z" /> : <path d="M3 1.5v13L14 8z" />}</svg>
      </button>
      <input type="range" aria-label="Round" aria-valuetext={roundName(round)} min={first} max={Math.max(last, first + 1)} step={1} value={round}
        onInput={(event) => {
          setPlaying(false);
          setRound(Number(event.currentTarget.value));
        }} />
      <output class="nums">{roundName(round)}</output>
      <p class="rounds-note" role="status">{note}</p>
    </div>
  );
}
