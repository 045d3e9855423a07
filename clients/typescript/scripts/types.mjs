// Writes src/api.ts, the types of sync, from the OpenAPI document of compactd.
//
//   node scripts/types.mjs [--check]
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const withoutExamples = (name, value) => (name === "examples" ? undefined : value);
const document = JSON.parse(await readFile(new URL("../../../internal/events/schema/openapi-agents.json", import.meta.url), "utf8"), withoutExamples);
const request = document.paths["/v1/sessions/{tenant}/{session}/sync"].post.requestBody.content["application/json"].schema;
const { "sync-response": response, error } = document.components.schemas;
const schemas = { SyncRequest: request, SyncResponse: response, WorkerError: error };
const types = astToString(await openapiTS({ openapi: "3.1.0", info: document.info, paths: {}, components: { schemas } }, {
  rootTypes: true, rootTypesNoSchemaPrefix: true, arrayLength: true,
}));
const text = `// Written by scripts/types.mjs from the OpenAPI document of compactd. Do not edit.\n\n${types}`;
const file = new URL("../src/api.ts", import.meta.url);
if (!process.argv.includes("--check")) await writeFile(file, text);
else if ((await readFile(file, "utf8")) !== text) {
  console.error("src/api.ts is not that of the OpenAPI document: run npm run types");
  process.exitCode = 1;
}
