// Distribution of a column over the agents. Its bars have the colours of the picture, so it is the legend as well.
import type { JSX } from "preact";
import { num, percent, short, within } from "../format";
import { colourOf, css, type Scale } from "../palette";
import { plain } from "../text";

const BINS = 40;

export interface Counts {
  bins: number[];
  missing: number;
  total: number;
  mean: number;
}

export function counted(values: Float32Array, scale: Scale): Counts {
  const size = scale.kind === "category" ? scale.words.length : BINS;
  const bins = new Array<number>(size).fill(0);
  const factor = scale.kind === "category" ? 1 : BINS / (scale.high - scale.low || 1);
  let missing = 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value !== value) {
      missing++;
      continue;
    }
    sum += value;
    const at = Math.floor((value - (scale.kind === "category" ? 0 : scale.low)) * factor);
    bins[at < 0 ? 0 : at >= size ? size - 1 : at]!++;
  }
  return { bins, missing, total: values.length, mean: sum / (values.length - missing || 1) };
}

/** What has many words shows the most common ones, in the order of the words. */
const WORDS_SHOWN = 8;

export function Distribution({ counts, scale, name, tall }: { counts: Counts; scale: Scale; name: string; tall: boolean }): JSX.Element {
  return scale.kind === "category" ? <Words counts={counts} scale={scale} name={name} /> : <Numbers counts={counts} scale={scale} name={name} tall={tall} />;
}

function Words({ counts, scale, name }: { counts: Counts; scale: Scale; name: string }): JSX.Element {
  const known = counts.total - counts.missing || 1;
  const rest = counts.bins.slice(WORDS_SHOWN).reduce((sum, n) => sum + n, 0);
  return (
    <ul class="words" aria-label={`Colours of ${plain(name)}`}>
      {scale.words.slice(0, WORDS_SHOWN).map((word, i) => (
        <li key={word}>
          <span class="swatch" style={{ background: css(colourOf(scale, i)) }} />
          <span class="word">{plain(word)}</span>
          <span class="bar"><i style={{ width: `${((counts.bins[i] ?? 0) / known) * 100}%`, background: css(colourOf(scale, i)) }} /></span>
          <span class="nums">{percent((counts.bins[i] ?? 0) / known)}</span>
        </li>
      ))}
      {scale.words.length > WORDS_SHOWN && (
        <li><span class="swatch other" /><span class="word">{scale.words.length - WORDS_SHOWN} others</span><span class="bar" /><span class="nums">{percent(rest / known)}</span></li>
      )}
    </ul>
  );
}

function Numbers({ counts, scale, name, tall }: { counts: Counts; scale: Scale; name: string; tall: boolean }): JSX.Element {
  const most = Math.max(1, ...counts.bins);
  const width = 400;
  const height = tall ? 240 : 56;
  const each = width / BINS;
  const middle = (i: number) => scale.low + ((i + 0.5) / BINS) * (scale.high - scale.low);
  const label = `Distribution of ${plain(name)} over ${num(counts.total)} agents, from ${num(scale.low)} to ${num(scale.high)}; mean ${within(counts.mean, scale.low, scale.high)}`;
  return (
    <div class={tall ? "histogram tall" : "histogram"}>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {counts.bins.map((n, i) => (
          <rect key={i} x={i * each + 0.4} width={each - 0.8} y={height - (n / most) * (height - 2)} height={(n / most) * (height - 2)} fill={css(colourOf(scale, middle(i)))}>
            <title>{`${num(middle(i))}: ${num(n)} agents`}</title>
          </rect>
        ))}
      </svg>
      <div class="ramp" style={{ background: `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((at) => css(colourOf(scale, scale.low + at * (scale.high - scale.low)))).join(", ")})` }} />
      <div class="ends nums">
        <span>{short(scale.low)}</span>
        <span class="quiet">mean {within(counts.mean, scale.low, scale.high)}{counts.missing > 0 && `, ${num(counts.missing)} unknown`}</span>
        <span>{short(scale.high)}</span>
      </div>
    </div>
  );
}
