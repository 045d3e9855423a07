// Times the reference on the conversation that bench writes to standard input, and prints
// microseconds as JSON: {"check": …, "pass": …}, each the median of its runs.
//
//	node peer.mjs CHECKOUT ESBUILD < {"messages": [...], "runs": 20}
//
// CHECKOUT has the sources of @juspay/neurolink, ESBUILD is the module of that name. Packages that the
// checkout does not have installed, which trace and log, are replaced by ones that do nothing.
import { mkdtempSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [checkout, esbuild] = process.argv.slice(2).map((p) => resolve(p));
const { build } = await import(pathToFileURL(join(esbuild, "lib/main.js")));

const nothing = `
const nothing = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "then" ? undefined : name === "prototype" ? {} : nothing),
  apply: (_, __, args) => (typeof args.at(-1) === "function" && args.at(-1) !== nothing ? args.at(-1)(nothing) : nothing), // a span runs its work
  construct: () => nothing,
  getPrototypeOf: () => nothing, // of which a module that is imported by name is made
});
module.exports = nothing;`;
const absent = {
  name: "absent",
  setup(b) {
    b.onResolve({ filter: /structuredSummarizer|^[^./]/ }, (a) =>
      a.kind === "entry-point" || isBuiltin(a.path) ? undefined : { path: a.path, namespace: "absent" },
    );
    b.onLoad({ filter: /.*/, namespace: "absent" }, () => ({ contents: nothing, loader: "js" }));
  },
};

const dir = mkdtempSync(join(tmpdir(), "peer"));
const out = join(dir, "peer.mjs");
const quiet = { ...console };
try {
  await build({
    stdin: {
      contents: `export { checkContextBudget } from "./budgetChecker";
export { ContextCompactor } from "./contextCompactor";
export { estimateMessagesTokens } from "../utils/tokenEstimation";`,
      resolveDir: join(checkout, "src/lib/context"),
    },
    bundle: true, format: "esm", platform: "node", outfile: out, logLevel: "error", plugins: [absent],
  });
  console.log = console.info = console.warn = console.debug = () => {};
  const { checkContextBudget, ContextCompactor, estimateMessagesTokens } = await import(pathToFileURL(out));
  let text = "";
  for await (const part of process.stdin) text += part;
  const { messages, runs } = JSON.parse(text);
  const target = Math.floor(estimateMessagesTokens(messages, "anthropic") / 2);
  const compactor = new ContextCompactor({ enableSummarize: false, provider: "anthropic" });
  const median = async (run) => {
    const took = [];
    for (let i = 0; i < 2 * runs; i++) {
      const began = performance.now();
      await run();
      took.push(1e3 * (performance.now() - began));
    }
    return took.slice(runs).sort((a, b) => a - b)[runs >> 1]; // the first half warms up
  };
  const check = await median(() =>
    checkContextBudget({ provider: "anthropic", model: "claude-sonnet-4-5", conversationMessages: messages, currentPrompt: "go on" }),
  );
  let reduced;
  const pass = await median(async () => (reduced = await compactor.compact(messages, target)));
  if (!Array.isArray(reduced.stagesUsed) || reduced.stagesUsed.length === 0) throw new Error("the reference compacted nothing");
  quiet.log(JSON.stringify({ check, pass, stages: reduced.stagesUsed }));
} finally {
  rmSync(dir, { recursive: true });
}
