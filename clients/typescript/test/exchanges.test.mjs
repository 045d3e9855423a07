import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { compactd } from "../dist/index.js";
import { play, read } from "./exchanges.mjs";

const directory = new URL("../../conformance/exchanges/", import.meta.url);
const files = (await readdir(directory)).filter((file) => file.endsWith(".txt"));

// The package does what clients/conformance demands of every adapter.
for (const file of files) {
  test(file, async () => play(await read(new URL(file, directory)), compactd));
}

// The runner notices an adapter that does nothing.
test("without an adapter", async () => {
  for (const file of files) {
    const script = await read(new URL(file, directory));
    const needsNothing = script.steps.every((step) => step.events.every(({ name }) => name !== "sync"));
    const played = play(script, () => fetch);
    if (needsNothing) await played;
    else await assert.rejects(played, assert.AssertionError, file);
  }
});
