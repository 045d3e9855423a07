import assert from "node:assert/strict";
import { test } from "node:test";
import { elements, members, object } from "../dist/json.js";

const some = (n) => Math.floor(Math.random() * n);
const text = () => Array.from({ length: some(6) }, () => '\\"{}[],: \n\u{1F600}éa'[some(13)]).join("");

function value(depth) {
  if (depth === 0) return [some(1e6), -1.5e-7, text(), true, null][some(5)];
  const values = Array.from({ length: some(4) }, () => value(some(depth)));
  return some(2) ? values : Object.fromEntries(values.map((v, i) => [text() + i, v]));
}

// The parts of a text are those that JSON.parse finds, however it is written.
test("parts of random texts", () => {
  for (let i = 0; i < 5000; i++) {
    const v = value(4);
    const written = JSON.stringify(v, null, some(3));
    if (Array.isArray(v)) assert.deepEqual(elements(written).map((e) => JSON.parse(e)), v);
    else if (v && typeof v === "object") assert.deepEqual(JSON.parse(object(members(written))), v, written);
  }
});

test("numbers and duplicates", () => {
  assert.deepEqual(elements("[ 1e2,12345678901234567890 ,-0]"), ["1e2", "12345678901234567890", "-0"]);
  assert.equal(members('{"a":1,"\\u0061":2}'), undefined);
});
