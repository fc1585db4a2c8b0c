/**
 * The trace context of a caller, as libcni 1.3.1 sets it: in the trace of whole networks and of single plugins, in the
 * environment of foreign plugins, and through a resident.
 */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { statusOf, untilServed } from "../support/resident-status.ts";
import { openResident } from "../support/served.ts";
import { untilTrue } from "../support/until-true.ts";

// The machine that needs one starts it itself.
delete process.env.PATCHBAY_TEST_RESIDENT;

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736", CALLER = "00f067aa0ba902b7";
const context = {
  TRACEPARENT: `00-${TRACE}-${CALLER}-01`,
  TRACESTATE: "vendor=1,other=t61rcWkgMzE",
  BAGGAGE: "userId=alice,isProduction=false",
};
const PATCHBAY_TRACE = "/run/trace";
const ipam = { type: "host-local", subnet: "10.1.0.0/24" };

/** A plugin that notes its environment in /run/seen and gives back prevResult. */
const recorder = `#!/bin/sh
env | sort | grep -E '^(TRACEPARENT|TRACESTATE|BAGGAGE)=' >/run/seen
sed -E 's/.*"prevResult":(.*)}$/\\1/'
`;
/** One that gives an address. */
const addresses = `#!/bin/sh
env | sort | grep -E '^(TRACEPARENT|TRACESTATE|BAGGAGE)=' >/run/seen
cat >/dev/null; echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.9/24"}]}'
`;

async function install(machine: Machine, name: string, script: string): Promise<void> {
  await machine.sh(`mkdir -p /run/bin; cat >/run/bin/${name}; chmod 755 /run/bin/${name}`, { stdin: script });
}

type Line = Record<string, string>;
const linesIn = async (machine: Machine): Promise<Line[]> =>
  (await machine.sh("cat /run/trace; rm /run/trace")).trim().split("\n").map((line) => JSON.parse(line));

test("a chain: the command is beneath the caller, plugins beneath the command, a foreign one too", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await install(machine, "recorder", recorder);
  const plugins = [{ type: "bridge", ipam }, { type: "tuning" }, { type: "recorder" }];
  await machine.sh("mkdir /run/networks; cat >/run/networks/net.conflist", {
    stdin: JSON.stringify({ cniVersion: "1.1.0", name: "net", plugins }),
  });
  const env = { NETCONFPATH: "/run/networks", CNI_PATH: `${patchbayPlugins()}:/run/bin`, ...context };
  for (const verb of ["add", "del"]) {
    const words = [PATCHBAY, verb, "net", container.netnsPath, "--container-id", "ctr"];
    const { code, stderr } = await machine.run(words, { env: { ...env, PATCHBAY_TRACE } });
    expect([code, stderr]).toEqual([0, ""]);
    const lines = await linesIn(machine);
    for (const line of lines) expect(line).toMatchObject({ traceId: TRACE });
    const command = lines.at(-1)!;
    expect(command).toMatchObject({ operation: "command", command: verb, parentSpanId: CALLER });
    const verbOf = (plugin: string) => lines.find((line) => line.plugin === plugin && line.operation === "verb")!;
    const [bridge, tuning, leases] = ["bridge", "tuning", "host-local"].map(verbOf) as [Line, Line, Line];
    const parents = [bridge, tuning, leases].map(({ parentSpanId }) => parentSpanId);
    expect(parents).toEqual([command.spanId!, command.spanId!, bridge.spanId!]);
    expect(new Set([CALLER, ...[command, bridge, tuning, leases].map(({ spanId }) => spanId)]).size).toBe(5);
    const ofBridge = lines.filter(({ plugin }) => plugin === "bridge");
    expect(new Set(ofBridge.map(({ spanId }) => spanId))).toEqual(new Set([bridge.spanId]));
    expect(lines.find(({ operation }) => operation === "exec")).toMatchObject({ spanId: command.spanId });
    expect(await machine.sh("cat /run/seen")).toBe(
      `BAGGAGE=${context.BAGGAGE}\nTRACEPARENT=00-${TRACE}-${command.spanId}-01\nTRACESTATE=${context.TRACESTATE}\n`,
    );
  }
});

test("a plugin that an engine calls: its verb is beneath the caller, its foreign IPAM plugin beneath the verb", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await install(machine, "addresses", addresses);
  const net = network(machine, { type: "bridge", ipam: { type: "addresses" } });
  const env = { CNI_PATH: `${patchbayPlugins()}:/run/bin`, ...context };
  const seen = () => machine.sh("grep TRACEPARENT /run/seen; rm /run/seen");
  await net.add(container, { env: { ...env, PATCHBAY_TRACE } });
  const lines = await linesIn(machine), verb = lines.at(-1)!;
  expect(verb).toMatchObject({ plugin: "bridge", operation: "verb", traceId: TRACE, parentSpanId: CALLER });
  expect(await seen()).toBe(`TRACEPARENT=00-${TRACE}-${verb.spanId}-01\n`);
  // Nobody would see a span of ours.
  await net.del(container, { env });
  expect(await seen()).toBe(`TRACEPARENT=${context.TRACEPARENT}\n`);
});

test("podman's driver is a span, too", async () => {
  await using machine = await openMachine();
  const env = { ...context, PATCHBAY_TRACE };
  expect(await machine.run([PATCHBAY, "info"], { env })).toMatchObject({ code: 0, stderr: "" });
  expect(await linesIn(machine)).toMatchObject([{ command: "info", traceId: TRACE, parentSpanId: CALLER }]);
});

test("a value that is not valid fails no call, whatever its size", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "bridge", ipam }, patchbayPlugins(), {
    env: { PATCHBAY_TRACE: "/run/trace" },
  });
  for (const TRACEPARENT of ["00-hello", context.TRACEPARENT.toUpperCase(), "0".repeat(100_000), "\u{1f310}-\x07"]) {
    await net.add(container, { env: { PATCHBAY_TRACE, TRACEPARENT, TRACESTATE: ",".repeat(100_000), BAGGAGE: "%" } });
    await net.del(container, { env: { PATCHBAY_TRACE, TRACEPARENT } });
    for (const line of await linesIn(machine)) expect(line).not.toHaveProperty("traceId");
  }
});

test("through a resident: each call has its caller's context", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await using _resident = await openResident(machine, 1);
  await untilServed(machine);
  const others = { ...context, TRACEPARENT: context.TRACEPARENT.replace("4bf9", "4bf8") };
  const net = network(machine, { type: "bridge", ipam }, patchbayPlugins(), {
    env: { PATCHBAY_TRACE: "/run/trace" },
  });
  const tracesOf = async (variables: Record<string, string>) => {
    const env = { ...variables, PATCHBAY_TRACE };
    await net.add(container, { env });
    await net.del(container, { env });
    return [...new Set((await linesIn(machine)).map(({ traceId, parentSpanId }) => `${traceId} ${parentSpanId}`))];
  };
  const count = async () => (await statusOf(machine)).served;
  for (const [env, trace] of [[context, TRACE], [others, TRACE.replace("4bf9", "4bf8")], [{}, undefined]] as const) {
    const before = await count();
    // On a busy machine a call may run by itself.
    const { traces } = await untilTrue(
      async () => ({ traces: await tracesOf(env), served: await count() }),
      ({ served }) => served >= before + 2,
    );
    if (trace === undefined) expect(traces).toEqual(["undefined undefined"]);
    else expect(traces).toContain(`${trace} ${CALLER}`);
    for (const one of traces) expect(one).toStartWith(String(trace));
  }
});
