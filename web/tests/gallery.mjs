// Pictures of runs for the book: node tests/gallery.mjs BASE FOLDER ID...
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [base, folder, ...ids] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "polity-gallery-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  viewport: { width: 1180, height: 560 },
  colorScheme: "light",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await context.newPage();
for (const id of ids) {
  await page.goto(`${base.replace(/\/$/, "")}/#/run/${encodeURIComponent(id)}`);
  await page.reload();
  const picture = page.locator(".overview").first();
  await picture.waitFor({ timeout: 20000 });
  // Networks settle.
  await page.waitForTimeout(2500);
  await picture.screenshot({ path: join(folder, `${id}.png`) });
}
await context.close();
rmSync(profile, { recursive: true, force: true });
