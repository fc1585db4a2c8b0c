/** The library's calls in a distributed trace: spans beneath the one that the program's environment names. */
import { expect, test } from "bun:test";
import { Library } from "../../support/library/installed.ts";
import { attachmentOf, machineWithNetwork, options } from "../../support/library/network.ts";

test("a call is a span beneath the program's, with its plugins beneath it", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736", caller = "00f067aa0ba902b7";
  const env = { PATCHBAY_TRACE: "/run/trace", TRACEPARENT: `00-${traceId}-${caller}-01` };
  await using library = await Library.open(machine, { options, env });
  for (const call of ["add", "del"]) {
    await library.must(call, "net", attachmentOf("c1"));
    const text = await machine.sh("cat /run/trace; rm /run/trace");
    const lines = text.trim().split("\n").map((line) => JSON.parse(line)), command = lines.at(-1);
    expect(command).toMatchObject({ command: "library", traceId, parentSpanId: caller });
    const verb = lines.find(({ plugin, operation }) => plugin === "bridge" && operation === "verb");
    expect(verb).toMatchObject({ traceId, parentSpanId: command.spanId });
  }
});
