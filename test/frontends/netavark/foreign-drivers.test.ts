/** Drivers that are other programs: how they are found and called, and how their answers are read. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setUpBy, tearDownBy } from "../../../src/frontends/netavark/container/foreign-driver.ts";
import { findForeignDriver } from "../../../src/frontends/netavark/run-foreign-driver.ts";
import type { PluginCall } from "../../../src/interop/podman-documents/netavark.schema.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { creation, ID } from "../../support/netavark/creation.ts";
import { netavark, netavarkProgram } from "../../support/netavark/netavark.ts";

const directory = mkdtempSync("/tmp/patchbay-netavark-plugins-");
let machine: Machine;
beforeAll(async () => void (machine = await openMachine()));
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await machine[Symbol.asyncDispose]();
});

/** A plugin that runs the script; `$input` has its stdin, and the folder's file `seen` is there to write into. */
function plugin(name: string, script: string): string {
  const path = `${directory}/${name}`;
  writeFileSync(path, `#!/bin/sh\ninput=$(cat)\n${script}\n`, { mode: 0o755 });
  return path;
}

const create = (driver: string, more: object = {}, directories = ["/none", directory]) =>
  netavark(
    machine,
    [...directories.flatMap((one) => ["--plugin-directory", one]), "create"],
    creation({ driver, ...more }),
  );

test("create gives the plugin the network, and takes what it makes of it", async () => {
  plugin(
    "echo",
    `printf '%s\\n' "$*" "$input" >${directory}/seen; printf %s "$input" | sed 's/"internal":false/"internal":true,"odd":1/'`,
  );
  const asked = { network_interface: "any", options: { a: "b" }, labels: {}, routes: [] };
  const { code, json, stdout } = await create("echo", asked);
  const sent = {
    dns_enabled: true,
    driver: "echo",
    id: ID,
    internal: false,
    ipv6_enabled: false,
    name: "orchard",
    network_interface: "any",
    options: { a: "b" },
    routes: [],
    labels: {},
  };
  expect(await Bun.file(`${directory}/seen`).text()).toBe(`create\n${JSON.stringify(sent)}\n`);
  expect(code).toBe(0);
  expect(stdout).toBe(`${JSON.stringify({ created: json.created, ...sent, internal: true })}\n`);
});

test("a plugin gets the trace context, with our span as parent where there is a trace", async () => {
  plugin("traced", `echo "$TRACEPARENT $TRACESTATE $BAGGAGE" >${directory}/seen; printf %s "$input"`);
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736", caller = "00f067aa0ba902b7";
  const env = { TRACEPARENT: `00-${trace}-${caller}-00`, TRACESTATE: "a=1", BAGGAGE: "b=2" };
  const args = ["--plugin-directory", directory, "create"];
  const call = (more: Record<string, string>) =>
    netavark(machine, args, creation({ driver: "traced" }), { env: { ...env, ...more } });
  expect(await call({})).toMatchObject({ code: 0, stderr: "" });
  expect(await Bun.file(`${directory}/seen`).text()).toBe(`${env.TRACEPARENT} a=1 b=2\n`);
  const { code, stderr } = await call({ PATCHBAY_TRACE: "1" }), line = JSON.parse(stderr);
  expect([code, line]).toEqual([
    0,
    expect.objectContaining({ command: "create", traceId: trace, parentSpanId: caller }),
  ]);
  expect(await Bun.file(`${directory}/seen`).text()).toBe(`00-${trace}-${line.spanId}-00 a=1 b=2\n`);
});

test("what a plugin answers is checked as what a user says", async () => {
  const answers: [change: string, error: string | undefined][] = [
    [`s/"name":"orchard"/"name":"garden"/`, "checked plugin invalid result: changed network name"],
    [`s/"id":"5/"id":"6/`, "checked plugin invalid result: changed network ID"],
    [`s/"driver":"checked"/"driver":"bridge"/`, "checked plugin invalid result: changed network driver"],
    [`s/"dns_enabled":true,//`, 'JSON Decoding error: "dns_enabled" is missing'],
    [
      `s/}$/,"subnets":[{"subnet":"ten"}]}/`,
      'JSON Decoding error: "network.subnets[0].subnet": invalid IP address syntax: "ten"',
    ],
    [
      `s/}$/,"subnets":[{"subnet":"10.0.0.0\\/8"},{"subnet":"10.1.0.0\\/16"}]}/`,
      "overlapping subnets: 10.0.0.0/8 and 10.1.0.0/16",
    ],
    [`s/}$/,"routes":[{"destination":"10.0.0.0\\/8"}]}/`, "route 10.0.0.0/8 requires a gateway for type unicast"],
    [
      `s/}$/,"ipam_options":{"driver":"none"},"network_dns_servers":["9.9.9.9"]}/`,
      "cannot set NetworkDNSServers if DNS is not enabled for the network",
    ],
    [`s/.*/[]/`, "JSON Decoding error: the document must be an object, got []"],
    [`s/.*//`, "JSON Decoding error: stdout: unexpected end of JSON input"],
    [`s/}$/,"subnets":[{"subnet":"10.0.0.0\\/8"}]}/`, undefined],
  ];
  for (const [change, error] of answers) {
    plugin("checked", `printf %s "$input" | sed '${change}'`);
    const { code, json } = await create("checked");
    expect({ change, code, error: json.error }).toEqual({ change, code: error === undefined ? 0 : 1, error });
    if (error === undefined) expect(json.subnets).toEqual([{ gateway: "10.0.0.1", subnet: "10.0.0.0/8" }]);
  }
});

test("failures of create", async () => {
  const failures: [script: string, error: string][] = [
    [`echo '{"error":"no water"}'; exit 3`, "exit code 3, message: no water"],
    [`echo '{"error":"no water","more":[]}'; exit 1`, "exit code 1, message: no water"],
    [`exit 1`, 'plugin "dry": exit code 1, parse error: stdout: unexpected end of JSON input'],
    [`echo '{"err":1}'; exit 1`, 'plugin "dry": exit code 1, parse error: stdout has no text under "error"'],
    [`kill -KILL $$`, 'plugin "dry" killed by signal'],
  ];
  for (const [script, error] of failures) {
    plugin("dry", script);
    expect(await create("dry")).toMatchObject({ code: 1, stdout: `${JSON.stringify({ error })}\n` });
  }
  writeFileSync(`${directory}/wrong`, "#!/none\n", { mode: 0o755 });
  expect((await create("wrong")).json.error).toContain("IO error: No such file or directory (os error 2)");
});

test("a plugin's stderr is ours, and a plugin that leaves a child behind does not keep us", async () => {
  plugin("loud", `echo rustling >&2; sleep 60 & echo $! >${directory}/child; printf %s "$input"`);
  const command = [netavarkProgram(), "--plugin-directory", directory, "create"];
  const { code } = await machine.run(["sh", "-c", 'exec "$0" "$@" 2>/run/stderr', ...command], {
    stdin: JSON.stringify(creation({ driver: "loud" })),
  });
  expect(code).toBe(0);
  expect(await machine.sh("cat /run/stderr")).toBe("rustling\n");
  await machine.sh(`kill $(cat ${directory}/child)`);
});

test("input and answer above what a pipe holds", async () => {
  plugin("big", `printf %s "$input"`);
  const labels = { big: "x".repeat(500_000) };
  expect((await create("big", { labels })).json.labels).toEqual(labels);
});

test("the first regular file that can be executed", () => {
  const [one, two] = [`${directory}/one`, `${directory}/two`];
  for (const each of [one, two]) mkdirSync(each);
  writeFileSync(`${one}/pear`, "", { mode: 0o644 });
  mkdirSync(`${one}/plum`);
  expect(findForeignDriver([one, two], "pear")).toBeUndefined();
  writeFileSync(`${two}/pear`, "", { mode: 0o755 });
  writeFileSync(`${two}/plum`, "", { mode: 0o700 });
  expect(findForeignDriver(["/none", one, two], "pear")).toBe(`${two}/pear`);
  expect(findForeignDriver([one, two], "plum")).toBe(`${two}/plum`);
  chmodSync(`${one}/pear`, 0o001);
  expect(findForeignDriver([one, two], "pear")).toBe(`${one}/pear`);
  for (const name of ["", ".", "../..", "../two/pear", "/bin/sh"]) {
    expect(findForeignDriver([one], name)).toBeUndefined();
  }
});

const call: PluginCall = {
  container_id: "c0ffee",
  container_name: "cup",
  network: { ...creation({ driver: "tree" }).network, subnets: [{ subnet: "10.0.0.0/8" }] },
  network_options: { interface_name: "eth0", aliases: ["mug"] },
};

test("setup gives the plugin the container, and answers what it says", () => {
  const answer = {
    interfaces: {
      net7: { mac_address: "aa:bb:cc:dd:ee:ff", subnets: [{ ipnet: "10.0.0.7/8", gateway: "10.0.0.1" }] },
    },
    dns_server_ips: ["10.0.0.1"],
    extra: 1,
  };
  const path = plugin("tree", `printf '%s\\n' "$*" "$input" >${directory}/seen; echo '${JSON.stringify(answer)}'`);
  expect(setUpBy(path, "/run/netns/x", call)).toEqual({
    dns_search_domains: null,
    dns_server_ips: ["10.0.0.1"],
    interfaces: answer.interfaces,
  });
  const seen = readFile(`${directory}/seen`);
  expect(seen[0]).toBe("setup /run/netns/x");
  expect(JSON.parse(seen[1]!)).toEqual({
    container_id: "c0ffee",
    container_name: "cup",
    port_mappings: null,
    network: call.network,
    network_options: { aliases: ["mug"], interface_name: "eth0", static_ips: null, static_mac: null, options: null },
  });
  tearDownBy(path, "/gone", call);
  expect(readFile(`${directory}/seen`)[0]).toBe("teardown /gone");
});

const readFile = (path: string) => readFileSync(path, "utf8").split("\n");

test("answers of setup that podman could not read, and failures", () => {
  const bad: [script: string, error: string][] = [
    [`echo '{"error":"no water"}'; exit 1`, 'plugin "tree" failed: exit code 1, message: no water'],
    [`exit 1`, 'plugin "tree" failed: plugin "tree": exit code 1, parse error: stdout: unexpected end of JSON input'],
    [`kill -TERM $$`, 'plugin "tree" failed: plugin "tree" killed by signal'],
    [`echo '{'`, 'plugin "tree" failed: JSON Decoding error: '],
    [
      `echo '{"interfaces":{"a":{}}}'`,
      'plugin "tree" failed: JSON Decoding error: "interfaces.a.mac_address" is missing',
    ],
    [
      `echo '{"interfaces":{"a":{"mac_address":"","subnets":[{"ipnet":"10.0.0.7"}]}}}'`,
      'JSON Decoding error: "interfaces.a.subnets[0].ipnet": invalid IP address syntax: "10.0.0.7"',
    ],
    [
      `echo '{"dns_server_ips":["dns"]}'`,
      'JSON Decoding error: "dns_server_ips[0]": invalid IP address syntax: "dns"',
    ],
  ];
  for (const [script, error] of bad) {
    const path = plugin("tree", script);
    expect(() => setUpBy(path, "/x", call)).toThrow(error);
  }
  // What it says in teardown does not matter, how it ends does.
  tearDownBy(plugin("tree", "echo nonsense"), "/x", call);
  expect(() => tearDownBy(plugin("tree", "exit 7"), "/x", call)).toThrow('plugin "tree" failed: ');
  expect(() => setUpBy(`${directory}/gone`, "/x", call)).toThrow(
    'plugin "gone" failed: IO error: No such file',
  );
  expect(setUpBy(plugin("tree", "echo '{}'"), "/x", call)).toEqual({
    dns_search_domains: null,
    dns_server_ips: null,
    interfaces: {},
  });
});
