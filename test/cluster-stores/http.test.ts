/** Requests of stores: servers that never end, say too much, send elsewhere or close at once get a sentence each. */
import { afterAll, expect, test } from "bun:test";
import { linesIn } from "../../src/cluster-stores/http.ts";
import { openMachine } from "../support/machine.ts";

const machine = await openMachine();
afterAll(() => machine[Symbol.asyncDispose]());

const run = await machine.run([process.execPath, `${import.meta.dir}/http-cases.ts`]);
if (run.code !== 0) throw new Error(run.stderr);
const said = JSON.parse(run.stdout) as Record<string, unknown>;

test("an answer has its status and its text", () => {
  expect(said["text"]).toEqual({ status: 201, text: "POST hello €" });
});

test.each([
  ["large", "the answer is larger than 64 MB"],
  ["slow", "no answer within 2 s"],
  ["silent", "no answer within 2 s"],
  ["a long line", "a line is larger than 8 MB"],
  ["a stream that outlives the limit", "it was no longer wanted"],
  ["an aborted signal", "it was no longer wanted"],
  ["a closed client", "it was no longer wanted"],
])("%s: %s", (name, why) => {
  expect(said[name]).toEqual({ kind: "unknown", message: `AT: ${why}` });
});

test("a server that is not there has got nothing", () => {
  expect(said["a server that is gone"]).toEqual({
    kind: "unsent",
    message: "http://127.0.0.1:9: nothing listens there (connection refused): start a server, or correct the address",
  });
});

test("a stream goes on behind the limit of a request", () => {
  expect(said["outlived"]).toBe(true);
});

test("nothing is unpacked, and nothing is asked elsewhere", () => {
  expect(said["compressed"]).toEqual({ status: 200, isSmall: true });
  expect(said["elsewhere"]).toBe(302);
});

test("lines are what stands between their ends, however they come", async () => {
  expect(said["lines"]).toEqual({ status: 200, heard: ["one", "two", "", "three €"] });
  const bytes = new TextEncoder().encode("a€𝄞\n\nb\nc");
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
    };
    expect([size, await Array.fromAsync(linesIn(chunks()))]).toEqual([size, ["a€𝄞", "", "b", "c"]]);
  }
});

test("what writes is sent once", () => {
  const error = "AT: the connection ended before the answer: a server has ended, or speaks TLS there (https)";
  const sentOnce = (method: string) => ({ got: ["GET /first", `${method} /next`], error });
  for (const method of ["POST", "PUT", "DELETE"]) {
    expect([method, said[`${method} on a connection that ends`]]).toEqual([method, sentOnce(method)]);
  }
  // The runtime does: it changes nothing.
  expect(said["GET on a connection that ends"]).toEqual({ got: ["GET /first", "GET /next", "GET /next"], error });
});
