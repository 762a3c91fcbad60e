// Which metrics share a chart.
import type { Metric } from "../api";

export interface Group {
  name: string;
  doc: string | null;
  kind: "lines" | "heat";
  series: { label: string; points: [number, number | null][] }[];
}

/** From so many series on, lines are a tangle and a heat map is not. */
const HEAT_FROM = 7;
const PART = /^(q0?\.?\d+|q1|b\d+|p\d+|min|max|low|high|mean|median|sd|variance|share)$/i;
const QUANTILE = /^(.*)\.(q[01](?:\.\d+)?)$/;

/** Quantiles, bins and the like of one thing belong together: `a.quantiles.q0.1` and `a.quantiles.q0.5`. */
export function grouped(metrics: Metric[]): { groups: Group[]; constant: { name: string; value: number | null }[] } {
  const constant: { name: string; value: number | null }[] = [];
  const found = new Map<string, Group>();
  const stems = new Map<string, number>();
  for (const metric of metrics) {
    const [stem] = split(metric.name);
    stems.set(stem, (stems.get(stem) ?? 0) + 1);
  }
  for (const metric of metrics) {
    const [stem, label] = split(metric.name);
    const together = label !== null && (stems.get(stem) ?? 0) > 1;
    if (!together && metric.points.length > 1 && unchanged(metric)) {
      constant.push({ name: metric.name, value: metric.points[0]?.[1] ?? null });
      continue;
    }
    const name = together ? stem : metric.name;
    const group = found.get(name) ?? { name, doc: metric.doc, kind: "lines" as const, series: [] };
    group.series.push({ label: together ? label : metric.name, points: metric.points });
    found.set(name, group);
  }
  const groups = [...found.values()];
  for (const group of groups) if (group.series.length >= HEAT_FROM) group.kind = "heat";
  return { groups, constant };
}

function split(name: string): [stem: string, label: string | null] {
  const quantile = QUANTILE.exec(name);
  if (quantile) return [quantile[1]!, quantile[2]!];
  const at = name.lastIndexOf(".");
  if (at < 0) return [name, null];
  const label = name.slice(at + 1);
  return PART.test(label) && /^(b|p|q)\d/i.test(label) ? [name.slice(0, at), label] : [name, null];
}

const unchanged = (metric: Metric): boolean => metric.points.every(([, value]) => value === metric.points[0]?.[1]);

/** All series of a group over one axis of rounds. */
export function aligned(series: Group["series"]): [number[], ...(number | null)[][]] {
  const rounds = [...new Set(series.flatMap(({ points }) => points.map(([round]) => round)))].sort((a, b) => a - b);
  const columns = series.map(({ points }) => {
    const by = new Map(points);
    return rounds.map((round) => by.get(round) ?? null);
  });
  return [rounds, ...columns];
}
