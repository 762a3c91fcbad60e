// Walks through the page in a browser, against a real server.
//   node tests/journeys.mjs http://127.0.0.1:7700 '{"guess":"ID","opinion":"ID","platform":"ID","debate":"ID","tools":"ID"}' [--out FOLDER]
// Kinds: guess, opinion (societies), platform (posts and feeds), debate, tools (evaluations); also grid, live (a run under way), if there is one.
// A kind that is left out is skipped. One line a check; exit status 1 if any fails. CHROMIUM names the browser, else /usr/bin/chromium.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [baseArgument, idsArgument, ...rest] = process.argv.slice(2);
if (!baseArgument || !idsArgument) {
  console.error("usage: node tests/journeys.mjs BASE '{\"guess\":\"ID\",...}' [--out FOLDER]");
  process.exit(2);
}
const address = new URL(baseArgument);
const token = /token=([^&]+)/.exec(address.hash)?.[1] ?? null;
const BASE = address.origin + address.pathname.replace(/\/$/, "");
const IDS = JSON.parse(idsArgument);
const OUT = rest[0] === "--out" ? rest[1] : null;
if (OUT) mkdirSync(OUT, { recursive: true });

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const HOSTILE = "<img src=x onerror=alert(1)><script>window.hacked=1</script>\u202Ereversed\u202C\u0007";
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let failed = 0;
let dialogs = 0;
const strangers = [];
const complaints = [];

async function check(name, test) {
  const began = performance.now();
  try {
    const said = await test();
    if (said === SKIP) console.log(`skip  ${name}`);
    else console.log(`ok    ${name}${said ? `: ${said}` : ""} (${Math.round(performance.now() - began)} ms)`);
  } catch (fault) {
    failed++;
    console.log(`FAIL  ${name}: ${String(fault.message ?? fault).split("\n").slice(0, 3).join(" | ")}`);
    if (OUT) await page.screenshot({ path: join(OUT, `fail-${failed}.png`) }).catch(() => {});
  }
}

const SKIP = Symbol("skip");
/** Asks again until the answer is as wanted. */
async function until(ask, wanted) {
  for (let i = 0; i < 300; i++) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("it did not become so in 30 seconds");
}
function must(truth, otherwise) {
  if (!truth) throw new Error(otherwise);
}

async function api(path) {
  const reply = await fetch(`${BASE}/api/${path}`, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  must(reply.ok, `GET /api/${path}: status ${reply.status}`);
  return reply.json();
}
const ofRun = (id, path = "") => `runs/${encodeURIComponent(id)}${path}`;
const view = (id, path = "") => `#/run/${encodeURIComponent(id)}${path}`;

const profile = mkdtempSync(join(tmpdir(), "polity-journeys-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  viewport: DESKTOP,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
// Machines of tests may be busy.
context.setDefaultTimeout(30000);
const page = context.pages()[0] ?? await context.newPage();
let expectingErrors = false;
page.on("dialog", (dialog) => {
  dialogs++;
  void dialog.dismiss();
});
page.on("request", (request) => {
  const url = new URL(request.url());
  if (!["data:", "blob:", "about:"].includes(url.protocol) && url.origin !== address.origin) strangers.push(request.url());
});
page.on("console", (message) => {
  // A server without claims of systems has no such path; the page then offers no such view.
  const absent = message.location().url.endsWith("/api/systems");
  if (message.type() === "error" && !expectingErrors && !absent) complaints.push(message.text());
});
page.on("pageerror", (fault) => complaints.push(fault.message));

async function open(hash) {
  if (!page.url().startsWith(BASE)) {
    await page.goto(`${BASE}/${token ? `#token=${token}` : hash}`);
    if (token) await page.waitForFunction(() => !location.hash.includes("token="));
  }
  await page.evaluate((next) => {
    location.hash = next;
  }, hash);
  await page.locator("main h1, .run-bar h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("main .loading"));
}

async function shot(name) {
  if (OUT) await page.screenshot({ path: join(OUT, `${name}.png`), fullPage: true });
}

async function noProblem(where = "") {
  const problem = main.locator(".problem");
  if (await problem.count()) throw new Error(`${where}${await problem.first().innerText()}`);
}

const main = page.locator("main");
const slider = main.getByRole("slider", { name: "Round" });

await check("health and headers of the page", async () => {
  const reply = await fetch(`${BASE}/`);
  const policy = reply.headers.get("content-security-policy") ?? "";
  must(/default-src 'none'/.test(policy) && /script-src 'self'/.test(policy) && !/script-src[^;]*unsafe/.test(policy), `content-security-policy: ${policy || "none"}`);
  must((await (await fetch(`${BASE}/healthz`)).text()).trim() === "ok", "/healthz does not say ok");
});

const { runs } = await api("runs");
const details = {};
for (const [kind, id] of Object.entries(IDS)) {
  await check(`the server knows the run of kind ${kind}`, async () => {
    details[kind] = await api(ofRun(id));
  });
}
const having = (test) => Object.entries(details).find(([, run]) => test(run))?.[1] ?? null;

await check("the list of runs shows the runs", async () => {
  await open("#/runs");
  await main.locator(".run").first().waitFor();
  must((await main.locator(".run").count()) === runs.length, `${await main.locator(".run").count()} cards for ${runs.length} runs`);
  for (const id of Object.values(IDS)) must(await main.locator(`a[href="${view(id)}"]`).count() === 1, `no card for ${id}`);
  await shot("runs");
  return `${runs.length} runs`;
});

await check("the list can be filtered", async () => {
  if (runs.length < 2) return SKIP;
  await main.getByLabel("Name").fill("no run has this name");
  await main.getByText("No run fits these filters").waitFor();
  await main.getByLabel("Name").fill("");
  await main.locator(".run").first().waitFor();
  return "";
});

await check("simulated runs carry their label", async () => {
  const simulated = runs.filter((run) => run.simulated).length;
  must((await main.locator(".run .simulated").count()) === simulated, `${await main.locator(".run .simulated").count()} labels for ${simulated} runs`);
  return `${simulated}`;
});

for (const [kind, run] of Object.entries(details)) {
  await check(`${kind}: the run opens from the list`, async () => {
    await open("#/runs");
    await main.locator(`a[href="${view(run.id)}"]`).click();
    await page.locator(".run-bar h1").waitFor();
    const metrics = await api(ofRun(run.id, "/metrics"));
    if (metrics.metrics.length > 0) await main.locator(".chart, .metrics .note").first().waitFor();
    await page.waitForTimeout(200);
    await shot(`overview-${kind}`);
    return `${metrics.metrics.length} metrics`;
  });
  await check(`${kind}: only views with data are offered`, async () => {
    const tabs = await page.locator(".tabs a").allInnerTexts();
    const shown = (name) => tabs.some((tab) => tab.startsWith(name));
    for (const [key, name] of [["messages", "Messages"], ["calls", "Calls"], ["items", "Items"], ["posts", "Feed"]]) {
      must(shown(name) === Boolean(run.has[key]), `${name} is ${shown(name) ? "offered without data" : "missing"}`);
    }
    return tabs.map((tab) => tab.split("\n")[0]).join(", ");
  });
}

const timed = having((run) => run.status === "done" && run.columns.some((column) => column.timed) && run.rounds > 2 && run.kind === "society");
await check("the slider scrubs through the rounds", async () => {
  if (!timed) return SKIP;
  await open(view(timed.id));
  await slider.waitFor();
  const output = main.locator(".rounds output");
  const took = [];
  await slider.focus();
  for (let i = 0; i < 6; i++) {
    const before = await output.innerText();
    const began = performance.now();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(([old]) => document.querySelector(".rounds output")?.textContent !== old, [before]);
    took.push(performance.now() - began);
    if (await slider.inputValue() === "-1") break;
  }
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.querySelector(".rounds output")?.textContent === "start");
  await page.keyboard.press("End");
  await page.waitForFunction(() => {
    const range = document.querySelector(".rounds input");
    return range.value === range.max && /^round/.test(document.querySelector(".rounds output").textContent);
  });
  const median = took.sort((a, b) => a - b)[Math.floor(took.length / 2)];
  return `median ${Math.round(median)} ms a step, ${timed.agents} agents`;
});

await check("the rounds play and stop", async () => {
  if (!timed) return SKIP;
  await slider.focus();
  await page.keyboard.press("Home");
  await main.getByRole("button", { name: "Play the rounds" }).click();
  await page.waitForFunction(() => Number(document.querySelector(".rounds input").value) >= 1);
  const stop = main.getByRole("button", { name: "Stop playing" });
  if (await stop.count()) await stop.click();
  return "";
});

const pictured = having((run) => run.space !== null) ?? having((run) => run.network !== null);
await check("the pointer tells an agent of the picture, and a click opens it", async () => {
  if (!pictured) return SKIP;
  await open(view(pictured.id));
  const canvas = main.locator(".stage canvas");
  await canvas.waitFor();
  await page.waitForFunction(() => document.querySelector(".stage canvas")?.dataset.paintMs);
  await page.waitForTimeout(pictured.space ? 100 : 2500);
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await shot("picture");
  for (let k = 1; k < 400; k++) {
    // Points of a spiral around the middle: crowds are there.
    const [angle, far] = [k * 2.4, Math.sqrt(k / 400) * 0.48];
    const [x, y] = [box.x + box.width * (0.5 + Math.cos(angle) * far), box.y + box.height * (0.5 + Math.sin(angle) * far)];
    await page.mouse.move(x, y);
    if (await main.locator(".tip").count()) {
      // The tip may still be that of the point before.
      await page.waitForTimeout(80);
      if (!(await main.locator(".tip").count())) continue;
      const told = await main.locator(".tip b").innerText();
      await page.mouse.click(x, y);
      await main.getByRole("heading", { level: 1, name: new RegExp(`^${told}$`, "i") }).waitFor();
      return told;
    }
  }
  throw new Error("no agent under 400 points");
});

const withAgents = having((run) => run.kind === "society" && run.columns.length > 0);
await check("agents: sorting, filtering, pages", async () => {
  if (!withAgents) return SKIP;
  await open(view(withAgents.id, "/agents"));
  await main.locator("tbody tr").first().waitFor();
  const column = withAgents.columns.find(({ kind }) => kind === "number") ?? withAgents.columns[0];
  const header = main.locator("th").filter({ has: page.getByRole("button", { name: column.name, exact: true }) });
  await header.getByRole("button").click();
  await page.waitForFunction(() => document.querySelector('th[aria-sort="ascending"]'));
  await header.getByRole("button").click();
  await page.waitForFunction(() => document.querySelector('th[aria-sort="descending"]'));
  must(/desc=true/.test(page.url()), "the order is not in the address");
  await main.getByLabel("Only where").selectOption("agent");
  await main.getByLabel("comparison").selectOption("lt");
  await main.getByLabel("value", { exact: true }).fill("3");
  await main.getByRole("button", { name: "Filter" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
  await shot("agents");
  await main.locator(".chip-button").click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 3);
  if (withAgents.agents > 50) {
    await main.getByRole("button", { name: "Next" }).click();
    await main.locator(".pager").getByText(/^51 to/).waitFor();
  }
  return column.name;
});

await check("an agent opens from the table", async () => {
  if (!withAgents) return SKIP;
  await open(view(withAgents.id, "/agents"));
  await main.locator("tbody a").first().click();
  await main.getByRole("heading", { level: 1, name: /^Agent \d+$/ }).waitFor();
  await main.getByRole("heading", { name: "States" }).waitFor();
  await shot("agent");
  await page.goBack();
  await main.locator("tbody a").first().waitFor();
  return "";
});

const called = having((run) => run.has.calls);
await check("a call unfolds with its prompt and answer; Escape folds it", async () => {
  if (!called) return SKIP;
  await open(view(called.id, "/calls"));
  const first = main.locator("details.call").first();
  await first.locator("> summary").click();
  await first.locator(".turn").first().waitFor();
  must(await first.locator(".turn").count() >= 2, "prompt or answer is missing");
  await shot("call");
  await first.locator("> summary").focus();
  await page.keyboard.press("Escape");
  must(!(await first.evaluate((node) => node.open)), "Escape does not fold it");
  return `${await main.locator("details.call").count()} on the page`;
});

await check("calls: filters", async () => {
  if (!called) return SKIP;
  await main.getByLabel("Words in prompt or answer").fill("no prompt has these words 5150");
  await main.getByText("No call fits these filters").waitFor();
  await main.getByLabel("Words in prompt or answer").fill("");
  await main.locator("details.call").first().waitFor();
  return "";
});

for (const kind of ["debate", "tools"]) {
  await check(`${kind}: items, right and wrong, down to a conversation`, async () => {
    const run = details[kind];
    if (!run?.has.items) return SKIP;
    await open(view(run.id, "/items"));
    await main.locator(".accuracy-number, .empty").first().waitFor();
    const all = await api(ofRun(run.id, "/items?limit=50"));
    for (const [name, correct] of [["Right", true], ["Wrong", false]]) {
      const { total } = await api(ofRun(run.id, `/items?correct=${correct}&limit=1`));
      await main.getByRole("button", { name, exact: true }).click();
      await page.waitForFunction((n) => document.querySelector(".found")?.textContent === `${n} shown`, new Intl.NumberFormat("en").format(total));
    }
    await main.getByRole("button", { name: "All", exact: true }).click();
    await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, all.items.length);
    await shot(`items-${kind}`);
    await main.locator("tbody a").first().click();
    await main.getByRole("heading", { level: 1, name: /^Item \d+$/ }).waitFor();
    await main.locator(".member").first().waitFor();
    await shot(`conversation-${kind}`);
    return `${all.total} items, ${await main.locator(".member").count()} turns`;
  });
}

const platform = having((run) => run.has.posts);
await check("feed: a user's feed, all posts, how one spread", async () => {
  if (!platform) return SKIP;
  await open(view(platform.id, "/feed?agent=1"));
  await main.locator(".post, .empty").first().waitFor();
  await shot("feed");
  await main.getByRole("button", { name: "All posts" }).click();
  await main.locator(".post").first().waitFor();
  await main.locator(".post a", { hasText: "how it spread" }).first().click();
  await main.locator(".tree svg circle").first().waitFor();
  await shot("spread");
  return `${await main.locator(".tree svg circle").count()} posts in the tree`;
});

const talking = having((run) => run.has.messages && run.kind === "society");
await check("messages and influence", async () => {
  if (!talking) return SKIP;
  await open(view(talking.id, "/messages"));
  await main.locator(".messages li").first().waitFor();
  await main.locator(".message-head a").first().click();
  await main.getByRole("heading", { level: 1, name: /^Agent/ }).waitFor();
  await open(view(talking.id, "/influence?agent=0"));
  await main.locator(".flow, .empty").first().waitFor();
  await shot("influence");
  return "";
});

await check("tables: each opens, with the meaning of its columns", async () => {
  const run = having((one) => one.tables.length > 0);
  if (!run) return SKIP;
  await open(view(run.id, "/tables"));
  for (const { name } of run.tables.slice(0, 6)) {
    await main.getByRole("combobox", { name: "Table", exact: true }).selectOption(name);
    await page.waitForFunction(() => document.querySelector('main [aria-busy="false"] table, main .empty'));
    await noProblem(`${name}: `);
  }
  await main.getByText("What the columns mean").click();
  await main.locator(".docs dt").first().waitFor();
  await shot("tables");
  return run.tables.map(({ name }) => name).slice(0, 6).join(", ");
});

await check("difference of two runs", async () => {
  if (runs.length < 2) return SKIP;
  const [a, b] = details.opinion && details.guess ? [IDS.guess, IDS.opinion] : [runs[0].id, runs[1].id];
  await open(`#/diff?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  await main.locator(".lead").waitFor();
  await shot("difference");
  return (await main.locator(".lead").innerText()).slice(0, 80);
});

await check("a run under way takes orders and tells the server's words", async () => {
  if (!details.live) return SKIP;
  await open(view(IDS.live));
  const now = await api(ofRun(IDS.live));
  if (now.status === "running") {
    await main.getByRole("button", { name: "Pause" }).click();
    await main.locator(".said:not(:empty)").waitFor();
    await main.getByRole("button", { name: "Resume" }).click();
    await main.getByRole("button", { name: "Pause" }).waitFor();
  }
  await main.getByRole("button", { name: "Send a message" }).click();
  await main.getByLabel("From agent").fill("7");
  await main.getByLabel("To agents").fill("3, 4");
  await main.getByLabel("Text").fill(HOSTILE);
  await main.getByRole("button", { name: "Send it" }).click();
  await main.locator(".said", { hasText: "sent in the next round" }).waitFor();
  const { changes } = await until(() => api(ofRun(IDS.live)), (run) => run.changes.length > 0);
  must(changes[0].what.includes("messages"), `the message is no change of the run: ${changes[0].what}`);
  return await main.locator(".said").innerText();
});

await check("the report of a sweep, in a frame without scripts", async () => {
  const { reports } = await api("reports");
  if (reports.length === 0) return SKIP;
  await open(`#/reports?report=${encodeURIComponent(reports[0].id)}`);
  const frame = main.locator("iframe.report");
  must((await frame.getAttribute("sandbox")) === "", "the frame of a report may do more than show it");
  const heading = frame.contentFrame().locator("h1").first();
  await heading.waitFor();
  await shot("report");
  return await heading.innerText();
});

await check("by keyboard only: skip link, a run, its agents, an agent", async () => {
  if (!withAgents) return SKIP;
  await page.goto("about:blank");
  await open("#/runs");
  await page.evaluate(() => document.activeElement?.blur?.());
  await page.keyboard.press("Tab");
  must(await page.evaluate(() => document.activeElement?.classList.contains("skip")), "the first Tab does not reach the skip link");
  await page.keyboard.press("Enter");
  must(await page.evaluate(() => document.activeElement?.id === "main"), "the skip link does not lead to the content");
  await tabTo((node, href) => node.getAttribute("href") === href, view(withAgents.id));
  const outline = await page.evaluate(() => {
    const card = document.activeElement.closest(".run") ?? document.activeElement;
    return getComputedStyle(card).outlineStyle;
  });
  must(outline !== "none", "the focus cannot be seen");
  await page.keyboard.press("Enter");
  await page.locator(".run-bar h1").waitFor();
  await page.waitForTimeout(200);
  await page.evaluate(() => document.querySelector(".skip").focus());
  await tabTo((node) => node.textContent === "Agents");
  await page.keyboard.press("Enter");
  await main.locator("tbody a").first().waitFor();
  await tabTo((node) => node.closest("tbody") !== null && node.tagName === "A");
  await page.keyboard.press("Enter");
  await main.getByRole("heading", { level: 1, name: /^Agent/ }).waitFor();
  return "";
});

async function tabTo(found, argument) {
  for (let i = 0; i < 150; i++) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluateHandle(() => document.activeElement);
    if (await focused.evaluate(found, argument)) return;
  }
  throw new Error("150 times Tab do not reach it");
}

const seenIn = [
  ["runs", "#/runs"],
  ...Object.entries(details).map(([kind, run]) => [`overview of ${kind}`, view(run.id)]),
  ...(withAgents ? [["agents", view(withAgents.id, "/agents")], ["an agent", view(withAgents.id, "/agents/0")]] : []),
  ...(called ? [["calls", view(called.id, "/calls")]] : []),
  ...(details.debate ? [["items", view(IDS.debate, "/items")], ["a conversation", view(IDS.debate, "/items/0")]] : []),
  ...(platform ? [["feed", view(platform.id, "/feed?agent=1")], ["posts", view(platform.id, "/feed?posts=all")]] : []),
  ...(talking ? [["messages", view(talking.id, "/messages")], ["influence", view(talking.id, "/influence?agent=0")]] : []),
  ...(having((run) => run.tables.length > 0) ? [["tables", view(having((run) => run.tables.length > 0).id, "/tables")]] : []),
  ...(runs.length > 1 ? [["difference", `#/diff?a=${encodeURIComponent(runs[0].id)}&b=${encodeURIComponent(runs[1].id)}`]] : []),
];

for (const [look, size, scheme] of [["desktop, light", DESKTOP, "light"], ["phone, dark", PHONE, "dark"]]) {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: scheme });
  const findings = [];
  const wide = [];
  for (const [name, hash] of seenIn) {
    await check(`${look}: ${name} is drawn`, async () => {
      await open(hash);
      await page.waitForTimeout(80);
      await noProblem();
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
      for (const one of violations) if (["serious", "critical"].includes(one.impact)) findings.push(`${name}: ${one.id} (${one.nodes[0].target})`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) wide.push(`${name}: ${over} px`);
      await shot(`${look.replace(", ", "-")}-${name.replaceAll(" ", "-")}`);
      return "";
    });
  }
  await check(`${look}: axe finds nothing serious or critical`, async () => {
    must(findings.length === 0, findings.join("; "));
    return `${seenIn.length} views`;
  });
  await check(`${look}: no sideways scrolling`, async () => must(wide.length === 0, wide.join("; ")));
  await check(`${look}: the colours follow the system`, async () => {
    const shade = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0));
    must(scheme === "dark" ? shade < 150 : shade > 600, `background ${shade}`);
  });
}

await page.setViewportSize(DESKTOP);
await check("the switch for dark and light works and is kept", async () => {
  await page.emulateMedia({ colorScheme: "light" });
  await open("#/runs");
  const shade = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await shade();
  const button = page.getByRole("button", { name: /Dark mode/ });
  await button.click();
  const after = await shade();
  must(before !== after, "the colours do not change");
  must(await button.getAttribute("aria-pressed") === "true", "the switch does not tell its state");
  await page.reload();
  await page.locator("main h1").waitFor();
  must(await shade() === after, "the choice is lost with a reload");
  await button.click();
});

await check("an unknown run is refused in plain words", async () => {
  expectingErrors = true;
  await open("#/runs");
  await page.evaluate(() => {
    location.hash = "#/run/no-such-run";
  });
  await main.locator(".problem").waitFor();
  const said = await main.locator(".problem span").first().innerText();
  await open("#/runs");
  await page.waitForTimeout(100);
  expectingErrors = false;
  return said.slice(0, 100);
});

/** Replaces texts in answers of the server by hostile ones, as an agent might write them. */
const TEXTS = new Set(["text", "answer", "prompt", "question", "note", "what", "waiting", "tell", "purpose", "cohort", "channel", "name_shown", "world_doc", "detail", "title", "gold", "extracted"]);
function poisoned(value, key = "") {
  if (typeof value === "string") return TEXTS.has(key) ? `${HOSTILE} ${value}` : value;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, poisoned(inner, name)]));
  return value;
}

await check("hostile texts stay texts", async () => {
  await page.route(/\/api\/(?!.*(?:events|column))/, async (route) => {
    const reply = await route.fetch().catch(() => null);
    if (!reply) return route.abort().catch(() => {});
    const body = await reply.text();
    let json = null;
    try {
      json = JSON.parse(body);
    } catch {
      return route.fulfill({ response: reply, body });
    }
    return route.fulfill({ response: reply, body: JSON.stringify(poisoned(json)) });
  });
  let shownTexts = 0;
  for (const [, hash] of seenIn) {
    await open(hash);
    await page.waitForTimeout(60);
    const fold = main.locator("details.call summary").first();
    if (await fold.count()) await fold.click();
    const found = await page.evaluate(() => ({
      images: document.querySelectorAll("img, script:not([src])").length,
      hacked: "hacked" in window,
      raw: /[\u202e\u0007]/.test(document.body.innerText),
      shown: document.body.innerText.includes("<img src=x"),
    }));
    must(found.images === 0, `${hash}: an element came out of a text`);
    must(!found.hacked, `${hash}: a script ran`);
    must(!found.raw, `${hash}: control characters are not shown`);
    if (found.shown) shownTexts++;
  }
  await page.unroute(/\/api\/(?!.*(?:events|column))/);
  must(dialogs === 0, `${dialogs} dialogs`);
  must(shownTexts > 0, "no view showed the text");
  return `shown as text in ${shownTexts} of ${seenIn.length} views`;
});

await check("no request to another origin", async () => must(strangers.length === 0, strangers.slice(0, 3).join(", ")));
await check("no error in the console", async () => must(complaints.length === 0, complaints.slice(0, 3).join(" | ")));

await context.close();
rmSync(profile, { recursive: true, force: true });
console.log(failed === 0 ? "all checks hold" : `${failed} checks failed`);
process.exit(failed === 0 ? 0 : 1);
