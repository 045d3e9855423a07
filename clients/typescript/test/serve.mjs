import { createServer } from "node:http";
import { after } from "node:test";

/** Starts a server until the end of the tests. */
export async function serve(handler) {
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    handler(request, response, Buffer.concat(parts).toString());
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  after(() => (server.close(), server.closeAllConnections()));
  return `http://127.0.0.1:${server.address().port}`;
}
