// Columns of agents by round, as the server sends them: one f32 an agent. Kept, because a slider comes back to its neighbours.
import { getColumn, type Column, type Run } from "../api";
import { underWay } from "../state";

const KEEP_BYTES = 256 * 1024 * 1024;

export class Columns {
  private kept = new Map<string, Column>();
  private asked = new Map<string, Promise<Column>>();
  private bytes = 0;

  constructor(private run: Run) {}

  update(run: Run): void {
    this.run = run;
  }

  private key(name: string, round: number): string {
    const timed = this.run.columns.find((column) => column.name === name)?.timed ?? true;
    return timed ? `${round} ${name}` : name;
  }

  peek(name: string, round: number): Column | null {
    return this.kept.get(this.key(name, round)) ?? null;
  }

  async get(name: string, round: number): Promise<Column> {
    const key = this.key(name, round);
    const kept = this.kept.get(key);
    if (kept) {
      // Used again: to the end of the queue of those that are thrown away.
      this.kept.delete(key);
      this.kept.set(key, kept);
      return kept;
    }
    let asked = this.asked.get(key);
    if (!asked) {
      asked = getColumn(this.run.id, name, round).finally(() => this.asked.delete(key));
      this.asked.set(key, asked);
    }
    const column = await asked;
    // A run under way may not have written this round yet; what stands in for it must not be kept.
    if (!underWay(this.run) || column.stateRound >= round) this.keep(key, column);
    return column;
  }

  private keep(key: string, column: Column): void {
    if (this.kept.has(key)) return;
    this.kept.set(key, column);
    this.bytes += column.values.byteLength;
    for (const [old, { values }] of this.kept) {
      if (this.bytes <= KEEP_BYTES) break;
      this.kept.delete(old);
      this.bytes -= values.byteLength;
    }
  }
}

export interface Picture {
  colour: Column;
  x: Column | null;
  y: Column | null;
  /** Angles, or the two parts of directions. */
  heading: Column[];
  /** Where the axes begin. */
  left: number;
  top: number;
}

/** All columns of one picture. */
export async function picture(columns: Columns, run: Run, by: string, round: number): Promise<Picture> {
  const { space } = run;
  const low = (name: string | undefined) => run.columns.find((column) => column.name === name)?.low ?? 0;
  const [colour, x, y, ...heading] = await Promise.all([
    columns.get(by, round),
    space ? columns.get(space.x, round) : null,
    space ? columns.get(space.y, round) : null,
    ...[space?.heading ?? []].flat().map((name) => columns.get(name, round)),
  ]);
  return { colour, x, y, heading, left: low(space?.x), top: low(space?.y) };
}

export function range(values: Float32Array): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
