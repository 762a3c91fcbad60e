// Small multiples over rounds, with one cursor for all of them.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { num, short } from "../format";
import { css, lineColours, numberScale } from "../palette";
import { useTheme, useWidth } from "../state";
import { plain } from "../text";
import { aligned, type Group } from "./group";

export interface Mark {
  round: number;
  what: string;
  kind: "change" | "order" | "fork" | "differs";
}

interface Props {
  group: Group;
  marks: Mark[];
  /** The round that the page shows; its values stand beside the title. */
  round: number;
  pick?: (round: number) => void;
  /** Charts of one key share a cursor. */
  together: string;
  height?: number;
  dashed?: (index: number) => boolean;
}

const INK = { light: { axis: "#5a626b", grid: "#e6e8ea", mark: "#b04a00", cursor: "#16191d" }, dark: { axis: "#9aa4ae", grid: "#2a2f35", mark: "#f0a05a", cursor: "#e8eaec" } };

export function SeriesChart(props: Props): JSX.Element {
  return props.group.kind === "heat" ? <Heat {...props} /> : <Lines {...props} />;
}

function Lines({ group, marks, round, pick, together, height = 132, dashed }: Props): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [dark] = useTheme();
  const readout = useRef<HTMLSpanElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef({ round, marks, pick });
  shown.current = { round, marks, pick };
  const data = useMemo(() => aligned(group.series), [group.series]);
  const colours = lineColours(dark);
  const measured = width > 0;
  const labels = group.series.map(({ label }) => label).join("\n");

  useEffect(() => {
    if (!box.current || !measured) return undefined;
    const ink = dark ? INK.dark : INK.light;
    const made = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [8, 10, 0, 0],
        cursor: {
          sync: { key: together, setSeries: false },
          y: false,
          drag: { x: false, y: false, setScale: false },
          points: { size: 6 },
        },
        scales: { x: { time: false } },
        axes: [
          { stroke: ink.axis, grid: { show: false }, ticks: { show: false }, size: 22, gap: 2, font: "11px system-ui, sans-serif", space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000] },
          { stroke: ink.axis, grid: { stroke: ink.grid, width: 1 }, ticks: { show: false }, size: 46, gap: 4, font: "11px system-ui, sans-serif", space: 26, values: (_, ticks) => axisNames(ticks) },
        ],
        series: [
          {},
          ...group.series.map((_, i) => ({
            stroke: colours[i % colours.length]!,
            width: 1.6,
            dash: dashed?.(i) ? [5, 4] : [],
            points: { show: data[0].length < 2 },
            spanGaps: true,
          })),
        ],
        hooks: {
          drawClear: [(u: uPlot) => drawMarks(u, shown.current.marks, shown.current.round, ink)],
          setCursor: [(u: uPlot) => tell(u, readout.current, shown.current.round)],
        },
      },
      data as uPlot.AlignedData,
      box.current,
    );
    plot.current = made;
    made.over.addEventListener("click", () => {
      const at = made.cursor.idx;
      if (at !== null && at !== undefined) shown.current.pick?.(made.data[0][at]!);
    });
    tell(made, readout.current, shown.current.round);
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [measured, dark, labels, height]);
  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);

  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData);
    if (plot.current) tell(plot.current, readout.current, round);
  }, [data]);
  useEffect(() => {
    plot.current?.redraw(false);
    if (plot.current) tell(plot.current, readout.current, round);
  }, [round, marks]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="name" title={group.doc ?? undefined}>{plain(group.name)}</span>
        <span class="readout nums" ref={readout} />
      </figcaption>
      {group.series.length > 1 && (
        <ul class="keys">
          {group.series.map(({ label }, i) => <li key={label}><i class={dashed?.(i) ? "dashed" : ""} style={{ color: colours[i % colours.length] }} />{plain(label)}</li>)}
        </ul>
      )}
      <div class="plot" ref={box} style={{ height: `${height}px` }} role="img" aria-label={summary(group)} />
    </figure>
  );
}

/** As many digits as tell one tick from the next. */
function axisNames(ticks: (number | null)[]): string[] {
  const known = ticks.filter((tick): tick is number => tick !== null);
  const step = known.length > 1 ? Math.abs(known[1]! - known[0]!) : 1;
  const digits = Math.min(8, Math.max(0, -Math.floor(Math.log10(step || 1) + 1e-9)));
  // Steps such as 0.25 need one digit more than their size tells.
  const exact = Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-6 ? digits : digits + 1;
  return ticks.map((tick) => (tick === null ? "" : Math.abs(tick) >= 1e4 ? short(tick) : tick.toLocaleString("en", { minimumFractionDigits: exact, maximumFractionDigits: exact }).replace("-", "−")));
}

function summary(group: Group): string {
  const parts = group.series.map(({ label, points }) => {
    const [first, last] = [points[0], points.at(-1)];
    return first && last ? `${plain(label)} from ${num(first[1])} in round ${first[0]} to ${num(last[1])} in round ${last[0]}` : `${plain(label)}: no values yet`;
  });
  return `${plain(group.name)} over rounds. ${parts.join("; ")}.`;
}

/** The values at the cursor, else at the round shown. */
function tell(u: uPlot, out: HTMLElement | null, round: number): void {
  if (!out) return;
  const rounds = u.data[0];
  const under = u.cursor.idx;
  let at = under ?? -1;
  if (under === null || under === undefined) for (let i = 0; i < rounds.length && rounds[i]! <= Math.max(round, 0); i++) at = i;
  if (at < 0 || at >= rounds.length) {
    out.textContent = "";
    return;
  }
  const values = u.data.slice(1).map((column) => num(column[at] as number | null));
  out.textContent = values.length > 4 ? `round ${num(rounds[at])}` : values.join(" · ");
  out.title = `in round ${num(rounds[at])}`;
}

function drawMarks(u: uPlot, marks: Mark[], round: number, ink: typeof INK.light): void {
  const { ctx, bbox } = u;
  const line = (at: number, colour: string, dash: number[]) => {
    const x = Math.round(u.valToPos(at, "x", true));
    if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  for (const mark of marks) line(mark.round, ink.mark, mark.kind === "order" ? [2 * devicePixelRatio, 3 * devicePixelRatio] : []);
  if (round >= 0) {
    ctx.globalAlpha = 0.35;
    line(round, ink.cursor, []);
  }
  ctx.restore();
}

/** Many series of one kind, such as the bins of a histogram: a column a round, a row a series. */
function Heat({ group, marks, round, pick, height = 132 }: Props): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const [dark] = useTheme();
  const canvas = useRef<HTMLCanvasElement>(null);
  const data = useMemo(() => aligned(group.series), [group.series]);
  const rounds = data[0];
  const rows = group.series.length;
  const plotHeight = height - 30;
  const high = useMemo(() => Math.max(1e-12, ...data.slice(1).flat().filter((value): value is number => value !== null)), [data]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || width === 0 || rounds.length === 0) return;
    const ratio = devicePixelRatio;
    canvas.current.width = width * ratio;
    canvas.current.height = plotHeight * ratio;
    const columns = data.slice(1) as (number | null)[][];
    const scale = numberScale(0, high, dark);
    const [w, h] = [(width * ratio) / rounds.length, (plotHeight * ratio) / rows];
    columns.forEach((values, row) => values.forEach((value, i) => {
      if (value === null) return;
      context.fillStyle = css(scale.table[Math.round((value / high) * 255)] ?? scale.missing);
      // The first series is the lowest bin: it lies at the bottom.
      context.fillRect(Math.floor(i * w), Math.floor((rows - 1 - row) * h), Math.ceil(w), Math.ceil(h));
    }));
    const ink = dark ? INK.dark : INK.light;
    for (const mark of marks) {
      const at = rounds.findIndex((one) => one >= mark.round);
      if (at < 0) continue;
      context.fillStyle = ink.mark;
      context.fillRect(Math.round(at * w), 0, ratio, plotHeight * ratio);
    }
  }, [data, width, dark, marks]);
  const at = Math.max(0, rounds.filter((one) => one <= Math.max(0, round)).length - 1);
  return (
    <figure class="chart">
      <figcaption>
        <span class="name" title={group.doc ?? undefined}>{plain(group.name)}</span>
        <span class="readout nums">0 to {num(high, 3)}</span>
      </figcaption>
      <div class="plot heat" style={{ height: `${height}px` }} role="img" aria-label={summary(group)}>
        <div class="heat-rows" style={{ height: `${plotHeight}px` }}><span>{plain(group.series.at(-1)?.label)}</span><span>{plain(group.series[0]?.label)}</span></div>
        <div class="heat-plot" ref={box}>
          <canvas ref={canvas} style={{ height: `${plotHeight}px` }} onClick={(event) => {
            const part = event.offsetX / (event.currentTarget.clientWidth || 1);
            const chosen = rounds[Math.floor(part * rounds.length)];
            if (chosen !== undefined) pick?.(chosen);
          }} />
          {rounds.length > 1 && <i class="here" style={{ left: `${((at + 0.5) / rounds.length) * 100}%`, height: `${plotHeight}px` }} />}
          <div class="ends nums"><span>{num(rounds[0])}</span><span>{num(rounds.at(-1))}</span></div>
        </div>
      </div>
    </figure>
  );
}
