// A line as small as a word.
import type { JSX } from "preact";
import { num } from "../format";

export function Spark({ values, label, width = 160, height = 32 }: { values: (number | null)[]; label: string; width?: number; height?: number }): JSX.Element {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  const low = Math.min(...known);
  const high = Math.max(...known);
  const x = (i: number) => 2 + (i / Math.max(1, values.length - 1)) * (width - 4);
  const y = (value: number) => height - 3 - ((value - low) / (high - low || 1)) * (height - 6);
  const path = values
    .map((value, i) => (value === null || !Number.isFinite(value) ? "" : `${i === 0 || values[i - 1] === null ? "M" : "L"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`))
    .join("");
  const told = known.length === 0 ? "no values" : `from ${num(known[0])} to ${num(known.at(-1))}`;
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${label}: ${told}`}>
      {known.length === 1 ? <circle cx={x(0)} cy={height / 2} r="2.5" /> : <path d={path} />}
    </svg>
  );
}
