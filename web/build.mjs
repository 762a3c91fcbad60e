// Builds the page into a folder (`node build.mjs dist`), or compares a fresh build with it (`node build.mjs --compare dist`).
// The same sources give the same bytes: no time, no absolute path and no source map goes into the output.
import { build } from "esbuild";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const FILES = ["index.html", "app.js", "app.css"];

async function into(folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    absWorkingDir: here,
    entryPoints: { app: "src/main.tsx" },
    outdir: folder,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022", "chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    charset: "ascii",
    logLevel: "warning",
  });
  writeFileSync(join(folder, "index.html"), readFileSync(join(here, "src/index.html")));
}

function sizes(folder) {
  for (const name of FILES) {
    const bytes = readFileSync(join(folder, name));
    console.log(`${name}: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} compressed`);
  }
}

async function compare(folder) {
  const fresh = mkdtempSync(join(tmpdir(), "polity-web-"));
  try {
    await into(fresh);
    const differ = FILES.filter((name) => {
      try {
        return !readFileSync(join(fresh, name)).equals(readFileSync(join(folder, name)));
      } catch {
        return true;
      }
    });
    if (differ.length > 0) {
      console.error(`${folder} is not what the sources give: ${differ.join(", ")}. Run: npm run build`);
      process.exitCode = 1;
    } else {
      console.log(`${folder} is what the sources give`);
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

const args = process.argv.slice(2);
if (args[0] === "--compare") {
  await compare(join(here, args[1] ?? "dist"));
} else {
  const folder = join(here, args[0] ?? "dist");
  await into(folder);
  sizes(folder);
}
