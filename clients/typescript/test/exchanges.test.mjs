import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { compactd, Conversation } from "../dist/index.js";
import { codec, play, read } from "./exchanges.mjs";

const filesOf = async (name) => {
  const directory = new URL(`../../conformance/${name}/`, import.meta.url);
  return (await readdir(directory)).filter((file) => file.endsWith(".txt")).map((file) => new URL(file, directory));
};
const [exchanges, core] = await Promise.all(["exchanges", "core"].map(filesOf));
const nameOf = (file) => file.pathname.split("/").slice(-2).join("/");

// The package does what clients/conformance demands of every adapter.
for (const file of exchanges) test(nameOf(file), async () => play(await read(file), compactd));
for (const file of core) {
  const start = (setup) => new Conversation({ ...setup, format: "openai", codec });
  test(nameOf(file), async () => play(await read(file), start));
}

// The runner notices an adapter that does nothing.
test("without an adapter", async () => {
  for (const file of exchanges) {
    const script = await read(file);
    const needsNothing = script.steps.every((step) => step.events.every(({ name }) => name !== "sync"));
    const played = play(script, () => fetch);
    if (needsNothing) await played;
    else await assert.rejects(played, assert.AssertionError, file.pathname);
  }
});
