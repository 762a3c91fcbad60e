// Texts of agents are hostile input. They only ever become text nodes, and characters that hide or reorder text are shown by their number.
import type { JSX } from "preact";

// C0 and C1 controls but tab and line feed; soft hyphen; marks and overrides of direction; invisible operators; separators of lines
// and paragraphs; the byte-order mark; tag characters, which smuggle instructions past readers.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

const code = (char: string): string => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** For places that take plain text only: titles, options, labels. */
export function plain(text: unknown): string {
  return shown(text).replace(/\r\n/g, "\n").replace(HIDDEN, (char) => `[${code(char)}]`);
}

export function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A text as it is, set apart from its surroundings so that its direction cannot leak. */
export function Text({ children, class: name }: { children: unknown; class?: string }): JSX.Element {
  const text = shown(children).replace(/\r\n/g, "\n");
  const out: (string | JSX.Element)[] = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    out.push(text.slice(from, found.index));
    out.push(<span class="hidden-char" title="a character that does not show">{code(found[0])}</span>);
    from = found.index + found[0].length;
  }
  out.push(text.slice(from));
  return <bdi class={name}>{out}</bdi>;
}

/** A long text with its line breaks. */
export function Block({ children, class: name = "" }: { children: unknown; class?: string }): JSX.Element {
  return (
    <div class={`block ${name}`}>
      <Text>{children}</Text>
    </div>
  );
}
