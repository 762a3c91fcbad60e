// How an attribute is spread, over all rounds at once: a column a round, strong where many agents are.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ColumnInfo, Run } from "../api";
import { counted, type Counts } from "../charts/bars";
import { roundName, short } from "../format";
import { colourOf, css, densityScale, type Scale } from "../palette";
import { useTheme, useWidth } from "../state";
import { plain } from "../text";
import type { Columns } from "./columns";

const MOST_COLUMNS = 80;
const MOST_VALUES = 16e6;
const AT_ONCE = 3;

interface Props {
  run: Run;
  columns: Columns;
  column: ColumnInfo;
  scale: Scale;
  round: number;
  setRound: (round: number) => void;
}

/** The rounds that are drawn: all, or an even choice where all would be too much to load. */
function drawn(run: Run): number[] {
  const most = Math.max(2, Math.min(MOST_COLUMNS, Math.floor(MOST_VALUES / Math.max(1, run.agents ?? 1))));
  const last = run.rounds - 1;
  const step = Math.max(run.states_every ?? 1, Math.ceil((last + 2) / most), 1);
  const rounds: number[] = [];
  for (let round = -1; round < last; round += step) rounds.push(round);
  return [...rounds, last];
}

export function OverRounds({ run, columns, column, scale, round, setRound }: Props): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [dark] = useTheme();
  const canvas = useRef<HTMLCanvasElement>(null);
  const rounds = useMemo(() => drawn(run), [run.id, run.rounds]);
  const counts = useCounts(columns, column.name, rounds, scale);
  const height = Math.round(width / 1.1);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || width === 0) return;
    const ratio = Math.min(2, devicePixelRatio);
    canvas.current.width = width * ratio;
    canvas.current.height = height * ratio;
    if (scale.kind === "category") stack(context, rounds, counts, scale);
    else spread(context, rounds, counts, dark);
  }, [counts, width, height, dark, scale]);

  const at = rounds.findLastIndex((one) => one <= round);
  return (
    <>
      <div class="stage" ref={box} style={{ aspectRatio: "1.1" }}>
        <canvas ref={canvas} role="img" class="over" aria-label={`How ${plain(column.name)} is spread over the agents, from the start to ${roundName(run.rounds - 1)}`}
          onClick={(event) => {
            const chosen = rounds[Math.floor((event.offsetX / (event.currentTarget.clientWidth || 1)) * rounds.length)];
            if (chosen !== undefined) setRound(chosen);
          }} />
        <i class="here" style={{ left: `${((at + 0.5) / rounds.length) * 100}%` }} />
        {scale.kind === "number" && <><span class="corner top-end nums">{short(scale.high)}</span><span class="corner low-end nums">{short(scale.low)}</span></>}
      </div>
      <p class="note">Each column is a round. {scale.kind === "number" ? "The stronger the colour, the more agents have this value." : "Shares of agents."}</p>
    </>
  );
}

/** Counts by round; they arrive one after the other, and so does the picture. */
function useCounts(columns: Columns, name: string, rounds: number[], scale: Scale): Map<number, Counts> {
  const [counts, setCounts] = useState(new Map<number, Counts>());
  const key = `${scale.kind} ${scale.low} ${scale.high}`;
  useEffect(() => {
    let current = true;
    const found = new Map<number, Counts>();
    setCounts(found);
    const left = rounds.slice();
    const next = async (): Promise<void> => {
      for (let round = left.shift(); round !== undefined && current; round = left.shift()) {
        const column = await columns.get(name, round).catch(() => null);
        if (column) found.set(round, counted(column.values, scale));
        if (current && (found.size % 8 === 0 || left.length === 0)) setCounts(new Map(found));
      }
    };
    for (let i = 0; i < AT_ONCE; i++) void next();
    return () => {
      current = false;
    };
  }, [columns, name, rounds, key]);
  return counts;
}

type Context = CanvasRenderingContext2D;

function spread(context: Context, rounds: number[], counts: Map<number, Counts>, dark: boolean): void {
  const { width, height } = context.canvas;
  let most = 1;
  for (const { bins } of counts.values()) for (const n of bins) if (n > most) most = n;
  const scale = densityScale(dark);
  // The square root shows small groups beside large ones.
  const shade = (n: number) => colourOf(scale, Math.sqrt(n / most));
  context.clearRect(0, 0, width, height);
  rounds.forEach((round, i) => {
    const bins = counts.get(round)?.bins;
    if (!bins) return;
    const [left, right] = [Math.floor((i * width) / rounds.length), Math.floor(((i + 1) * width) / rounds.length)];
    bins.forEach((n, bin) => {
      if (n === 0) return;
      const top = Math.floor(((bins.length - 1 - bin) * height) / bins.length);
      context.fillStyle = css(shade(n));
      context.fillRect(left, top, right - left, Math.ceil(height / bins.length));
    });
  });
}

function stack(context: Context, rounds: number[], counts: Map<number, Counts>, scale: Scale): void {
  const { width, height } = context.canvas;
  context.clearRect(0, 0, width, height);
  rounds.forEach((round, i) => {
    const of = counts.get(round);
    if (!of) return;
    const [left, right] = [Math.floor((i * width) / rounds.length), Math.floor(((i + 1) * width) / rounds.length)];
    let from = height;
    of.bins.forEach((n, word) => {
      const size = (n / (of.total || 1)) * height;
      context.fillStyle = css(colourOf(scale, word));
      context.fillRect(left, from - size, right - left, size);
      from -= size;
    });
  });
}
