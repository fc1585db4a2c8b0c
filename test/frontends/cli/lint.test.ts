/**
 * `patchbay lint`, and what `add`, `plan` and `status` say about misspelt keys: where they are and what was meant.
 *
 * Longer than 300 lines: a table, one entry a finding.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { serveIn } from "../../support/served-pool.ts";
import { type ScriptPlugins, scriptPlugins } from "../../support/script-plugins.ts";
import { runToEnd } from "../../support/run-to-end.ts";

let at: ScriptPlugins;
let configs: string;
beforeEach(() => {
  at = scriptPlugins();
  configs = `${at.directory}/configs`;
  mkdirSync(configs);
});
afterEach(() => at[Symbol.dispose]());

const run = (args: string[], env: Record<string, string> = {}, program = PATCHBAY) =>
  runToEnd([program, ...args], { env: { NETCONFPATH: configs, ...env } });

/** Writes the file and returns its findings, without its name. */
function lint(text: string, env: Record<string, string> = {}, name = "n.conflist"): string[] {
  writeFileSync(`${configs}/${name}`, text);
  const { stdout, stderr } = run(["lint", `${configs}/${name}`], env);
  expect(stderr).toBe("");
  return stdout.split("\n").slice(0, -1).map((line) => line.replace(`${configs}/${name}:`, ""));
}

const leased = { type: "host-local", subnet: "10.0.0.0/24" };
const list = (...plugins: unknown[]) => JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins });
/** The findings for a plugin that another comes before, without the position. */
const ofPlugin = (plugin: unknown, env?: Record<string, string>) =>
  lint(list({ type: "loopback" }, plugin), env)
    .map((line) => line.replace(/^[0-9:]+ /, "").replace('"plugins[1]" ', "").replaceAll("plugins[1].", ""));

test("a finding has file, line, column, key, and what was meant", () => {
  const text = '{\n  "cniVersion": "1.1.0", "name": "n", // a network\n  "plugins": [\n    {\n' +
    '      "type": "bridge",\n      "brigde": "br0",\n      "isGatway": true,\n    }\n  ]\n}\n';
  expect(lint(text)).toEqual([
    "2:39: note: comments and trailing commas are read here, but engines that read the file with Go's libcni " +
    "(containerd, podman) refuse it",
    '6:7: warning: "plugins[0].brigde" is not known, and ignored; did you mean "bridge"?',
    '7:7: warning: "plugins[0].isGatway" is not known, and ignored; did you mean "isGateway"?',
  ]);
  expect(run(["lint"]).code).toBe(1);
  expect(JSON.parse(run(["lint", "--json"]).stdout)[1]).toEqual({
    file: `${configs}/n.conflist`,
    line: 6,
    column: 7,
    severity: "warning",
    key: "plugins[0].brigde",
    message: "is not known, and ignored",
    meant: "bridge",
  });
});

test("the name of a network is found wrong once", () => {
  expect(lint('{"cniVersion":"1.1.0","name":"_n","plugins":[{"type":"loopback"}]}')).toEqual([
    '1:30: error: "name" invalid characters found in network name; _n',
  ]);
});

describe("what is found", () => {
  const rows: [plugin: unknown, findings: string[]][] = [
    [{ type: "bridge", bridge: "b", HAIRPINMODE: true, mtu: null }, []],
    // As examples of the specification's version 0.3.1 have them.
    [{ type: "macvlan", master: "eth0", ipam: { type: "dhcp", routes: [{ dst: "10.3.0.0/16" }] } }, []],
    [{ type: "macvlan", ipam: { type: "dhcp", routes: [{ dst: "10.0.0.0/8", gw: "10.0.0.1" }] } }, []],
    [{ type: "macvlan", ipam: { type: "dhcp", routes: [{ dst: "10.0.0.0/33", metric: 1 }] } }, [
      'error: "ipam" ipam.routes[0].dst: "10.0.0.0/33" is not valid; expected: a network in CIDR notation',
      'note: "ipam.routes[0].metric" is not known, and ignored',
    ]],
    [{ type: "bridge", frobnicate: 1 }, ['note: "frobnicate" is not known, and ignored']],
    [{ type: "bridge", mtu: "big" }, ['error: "mtu" must be an integer, got "big"']],
    [{ type: "bridge", ipMasqBackend: "nftable" }, [
      'error: "ipMasqBackend" must be one of "iptables", "nftables", got "nftable"; did you mean "nftables"?',
    ]],
    [{ type: "macvlan", mac: "x" }, [
      'warning: "mac" must match ^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$, got "x"',
    ]],
    [{ type: "portmap", capabilities: { portMappings: true }, markMasqBit: 40 }, [
      'error: "markMasqBit" failed to parse config: MasqMarkBit must be between 0 and 31; "markMasqBit" is 40',
    ]],
    // What the plugin and the schema refuse is said once.
    [{ type: "macvlan", mode: "brige" }, [
      'error: "mode" must be one of "bridge", "private", "vepa", "passthru", got "brige"; did you mean "bridge"?',
    ]],
    [{ type: "ipvlan", mode: "x" }, ['error: "mode" must be one of "l2", "l3", "l3s", got "x"']],
    [{ type: "portmap", capabilities: { portMappings: true }, backend: "ebpf" }, [
      'error: "backend" must be one of "iptables", "nftables", got "ebpf"',
    ]],
    [{ type: "firewall", ingressPolicy: "opn" }, [
      'error: "ingressPolicy" must be one of "open", "same-bridge", "isolated", got "opn"; did you mean "open"?',
    ]],
    [{ type: "vrf", vrfname: "a-name-that-is-too-long" }, ['error: "vrfname" interface name is too long']],
    [{ type: "bridge", vlan: 5000 }, ['error: "vlan" invalid VLAN ID 5000 (must be between 0 and 4094)']],
    [{ type: "tuning", mac: "x" }, ['error: "mac" invalid args x for MAC addr: address x: invalid MAC address']],
    [{ type: "bridge", vlanTrunk: [{ idd: 2, minID: 1, maxID: 4 }] }, [
      'warning: "vlanTrunk[0].idd" is not known, and ignored; did you mean "id"?',
    ]],
    [{ type: "bridge", dns: { nameserver: [] } }, [
      'warning: "dns.nameserver" is not known, and ignored; did you mean "nameservers"?',
    ]],
    [{ type: "bridge", ipam: { type: "host-local", ranges: [[{ subent: "10.0.0.0/24" }]] } }, [
      'error: "ipam.ranges[0][0].subnet" is missing',
      'warning: "ipam.ranges[0][0].subent" is not known, and ignored; did you mean "subnet"?',
    ]],
    [{ type: "bridge", ipam: { type: "host-local", ranges: [[{ subnet: "10.0.0.500/24" }]] } }, [
      'error: "ipam.ranges[0][0].subnet" invalid CIDR address: 10.0.0.500/24',
    ]],
    [{ type: "bridge", subnet: "10.0.0.0/24", ipam: { type: "host-local", isGateway: true } }, [
      'warning: "subnet" is not known, and ignored; did you mean "ipam.subnet"?',
      'warning: "ipam.isGateway" is not known, and ignored; did you mean "isGateway"?',
    ]],
    [{ type: "bridge", ipam: { type: "static", routes: [{ dts: "0.0.0.0/0" }] } }, [
      'error: "ipam.routes[0].dst" is missing',
      'warning: "ipam.routes[0].dts" is not known, and ignored; did you mean "dst"?',
    ]],
    [{ type: "bridge", capabilities: { ips: true, mac: true }, ipam: { type: "static" } }, []],
    [{ type: "bridge", capabilities: { portMapings: true, portMappings: true, whatever: false } }, [
      'warning: "capabilities.portMapings" is no capability that bridge uses; did you mean "portMappings"?',
      'warning: "capabilities.portMappings" is no capability that bridge uses',
    ]],
    [{ type: "portmap", runtimeConfig: { portmaping: [] } }, [
      'warning: "runtimeConfig.portmaping" is not known, and ignored; did you mean "portMappings"?',
    ]],
    [{ type: "tuning", args: { cli: 1, cni: { labels: [] } }, sysctl: { "net.ipv4.conf.all.x": "1" } }, []],
    [{ type: "tuning", args: { cni: { mut: 1500, promsic: true } } }, [
      'warning: "args.cni.mut" is not known, and ignored; did you mean "mtu"?',
      'warning: "args.cni.promsic" is not known, and ignored; did you mean "promisc"?',
    ]],
    [{ type: "flannel", delegate: { isGatway: true }, ipam: { x: 1 }, capabilities: { portMappings: true } }, []],
    [{ type: "brige" }, ['warning: "type" "brige" is no plugin of this program; did you mean "bridge"?']],
    [{ type: "bridge", ipam: { type: "host-locl" } }, [
      'warning: "ipam.type" "host-locl" is no plugin of this program; did you mean "host-local"?',
    ]],
    ...["/opt/cni/bin/bridge", "./bridge", "calico/bin"].map((type): [object, string[]] => [{ type }, [
      `error: "type" "${type}" is a path: it must be a name, which is looked up in the plugin directories`,
    ]]),
    [{ type: "bridge", ipam: { type: "/bin/host-local" } }, [
      'error: "ipam.type" "/bin/host-local" is a path: it must be a name, which is looked up in the plugin directories',
    ]],
    [{ bridge: "b" }, ['error: "type" is missing']],
    // Words of others, and keys of other plugins.
    [{ $schema: "bridge.json", type: "bridge" }, []],
    [{ type: "bridge", ipam: { ...leased, routes: [{ dst: "0.0.0.0/0", via: "10.0.0.1" }] } }, [
      'warning: "ipam.routes[0].via" is not known, and ignored; did you mean "gw"?',
    ]],
    [{ type: "bridge", ingressPolicy: "isolated", isolate: true }, [
      'warning: "ingressPolicy" is an option of firewall, and ignored here',
      'warning: "isolate" is an option of podman\'s networks, as "ingressPolicy" is of firewall, and ignored here',
    ]],
    [{ type: "firewall", iptablesAdminChainName: "x".repeat(29) }, [
      `error: iptablesAdminChainName: "${
        "x".repeat(29)
      }" cannot be the name of a chain; it is one word of at most 28 ` +
      'bytes, without quotes, and begins with neither "-" nor "!"',
    ]],
    // What has no effect.
    [{ type: "bridge", isGateway: true, ipMasq: true }, [
      'warning: "isGateway" has no effect without "ipam": the container has no address',
      'warning: "ipMasq" has no effect without "ipam": the container has no address',
    ]],
    [{ type: "bridge", isGateway: true, ipMasq: true, ipam: leased }, [
      'warning: "ipMasq" has nothing to do: no route of IPv4 leads out of the container; "ipam" needs ' +
      '"routes": [{ "dst": "0.0.0.0/0" }], or bridge "isDefaultGateway"',
    ]],
    [{
      type: "ptp",
      ipMasq: true,
      ipam: { ...leased, ranges: [[{ subnet: "fd00::/64" }]], routes: [{ dst: "0.0.0.0/0" }] },
    }, [
      'warning: "ipMasq" has nothing to do: no route of IPv6 leads out of the container; "ipam" needs ' +
      '"routes": [{ "dst": "::/0" }]',
    ]],
    [{ type: "bridge", ipMasq: true, isDefaultGateway: true, ipam: leased }, []],
    [{ type: "bridge", ipMasq: true, ipam: { type: "dhcp" } }, []],
    [{ type: "bridge", ipMasq: true, isGateway: true, ipam: { ...leased, routes: [{ dst: "0.0.0.0/0" }] } }, []],
    [{ type: "bridge", ipMasq: true, ipam: { ...leased, routes: [{ dst: "0.0.0.0/0" }] } }, [
      'warning: "ipMasq" has nothing to do while the host has no address in 10.0.0.0/24; "isGateway" gives it the gateway\'s',
    ]],
    [{ type: "bridge", ipam: { type: "static", addresses: [{ address: "10.1.0.5/24", gateway: "10.9.0.1" }] } }, [
      'warning: "ipam.addresses[0].gateway" 10.9.0.1 is not in the subnet of 10.1.0.5/24',
    ]],
    [
      { type: "bridge", ipam: { ...leased, routes: [{ dst: "10.2.0.0/24" }, { dst: "0.0.0.0/0", gw: "10.2.0.1" }] } },
      [
        'error: "ipam.routes[1]" 0.0.0.0/0 via 10.2.0.1 cannot be added: network is unreachable',
      ],
    ],
    ...[
      {
        type: "bridge",
        routes: [{ dst: "10.2.0.1/32", gw: "0.0.0.0", scope: 253 }, { dst: "0.0.0.0/0", gw: "10.2.0.1" }],
      },
      { type: "bridge", routes: [{ dst: "0.0.0.0/0", gw: "10.2.0.1" }], capabilities: { ipRanges: true } },
      { type: "host-device", routes: [{ dst: "0.0.0.0/0", gw: "10.2.0.1" }], device: "e", useInterfaceNetwork: true },
    ].map(({ routes, ...plugin }): [unknown, string[]] => [{ ...plugin, ipam: { ...leased, routes } }, []]),
    [{ type: "firewall", backend: "iptables", firewalldZone: "x" }, [
      'warning: "firewalldZone" has no effect: the backend is iptables',
    ]],
    [{ type: "firewall", ingressPolicy: "isolated" }, [
      "error: \"ingressPolicy\" has no effect behind loopback: the container's packets do not meet the host's rules",
    ]],
  ];
  for (const [plugin, findings] of rows) {
    test(JSON.stringify(plugin), () => expect(ofPlugin(plugin)).toEqual(findings));
  }

  test("plugins that are not ours are not checked, but our IPAM plugins in them are", () => {
    at.plugin("bridge");
    const env = { CNI_PATH: `${at.runtime.pluginPath}:${patchbayPlugins()}` };
    const ipam = { type: "host-local", subent: "10.0.0.0/24" };
    expect(ofPlugin({ type: "bridge", brigde: 1, ipam }, env)).toEqual([
      'warning: "ipam.subent" is not known, and ignored; did you mean "subnet"?',
    ]);
    expect(ofPlugin({ type: "ptp", mut: 1, ipam: { type: "static" } }, env)[0]).toContain('did you mean "mtu"?');
    expect(ofPlugin({ type: "nowhere" }, env)[0]).toStartWith(
      'error: "type" failed to find plugin "nowhere" in path [',
    );
  });

  test("the list itself", () => {
    const of = (conf: unknown) => lint(JSON.stringify(conf)).map((line) => line.replace(/^[0-9:]+ /, ""));
    const guarded = (...types: string[]) =>
      lint(list(...types.map((type) => ({ type })), { type: "firewall", ingressPolicy: "isolated" }));
    expect(guarded("loopback", "bridge", "tuning")).toEqual([]);
    expect(guarded("loopback", "macvlan", "tuning")[0]).toContain("has no effect behind macvlan");
    const plugins = [{ type: "loopback" }];
    expect(of({ cniVersion: "1.1.0", name: "n", plugins, nerdctlID: "x" })).toEqual([
      'note: "nerdctlID" is not known, and ignored',
    ]);
    expect(of({ cniVersion: "1.1.0", name: "n", plugins, disableChekc: true })[0]).toContain('mean "disableCheck"');
    expect(of({ cniVersion: "1.2.0", name: "n", plugins })).toEqual([
      'error: "cniVersion" 1.2.0 is newer than 1.1.0, the newest this program speaks',
    ]);
    expect(of({ cniVersion: "1.1", name: "n", plugins })[0]).toContain("is none of the versions there are: 0.1.0");
    expect(of({ name: "n", plugins })).toEqual(['warning: "cniVersion" is missing, and 0.1.0 is meant']);
    expect(of({ cniVersion: "1.1.0", plugins })).toEqual(['error: "name" is missing']);
    expect(of({ $schema: "list.json", cniVersion: "1.1.0", name: "n", plugins })).toEqual([]);
    expect(of({ cniVersion: "1.1.0", name: "n" })).toEqual([
      'error: no plugin configs found; a list needs "plugins"',
    ]);
    const portmap = { type: "portmap", capabilities: { portMappings: true } };
    expect(of({ cniVersion: "1.1.0", name: "n", plugins: [portmap] })[0]).toContain(
      "stands behind the plugin that makes",
    );
    expect(of({ cniVersion: "1.1.0", name: "n", plugins: [{ type: "bridge", ipam: leased }, portmap] })).toEqual([
      'warning: "plugins[1]" callers beyond the container\'s subnet get no answer: no route of IPv4 leads out of the ' +
      'container; "ipam" needs "routes": [{ "dst": "0.0.0.0/0" }], or bridge "isDefaultGateway"',
    ]);
    expect(of({ cniVersion: "1.1.0", name: "n", plugins: [] })[0]).toContain("no plugins in list");
    expect(of([])).toEqual(["error: must be an object"]);
    expect(lint('{"cniVersion":"1.1.0","name":"n","name":"m","plugins":[{"type":"loopback"}]}')).toEqual([
      '1:34: warning: "name" stands here again, and only the last counts',
    ]);
  });

  test("of several versions, the one that counts", () => {
    const of = (conf: object) =>
      lint(JSON.stringify({ name: "n", plugins: [{ type: "loopback" }], ...conf }))
        .map((line) => line.replace(/^[0-9:]+ /, ""));
    const newer = (key: string, version: string) => [
      `error: "${key}" ${version} is newer than 1.1.0, the newest this program speaks`,
    ];
    expect(of({ cniVersions: ["0.4.0", "1.1.0"] })).toEqual([]);
    expect(of({ cniVersion: "9.0.0", cniVersions: ["1.0.0", "8.0.0"] })).toEqual([]);
    expect(of({ cniVersion: "9.0.0", cniVersions: ["8.0.0"] })).toEqual(newer("cniVersion", "9.0.0"));
    const meant = ['warning: "cniVersions" has no version that this program knows, and 0.1.0 is meant'];
    expect(of({ cniVersions: ["8.0.0"] })).toEqual(meant);
    expect(of({ cniVersions: [] })).toEqual(meant);
    expect(of({ cniVersion: "0.4.0", cniVersions: ["1.0.5"] })[0]).toStartWith(
      'error: "cniVersions" "1.0.5" is none of the versions there are: 0.1.0',
    );
    expect(of({ cniVersion: "1.0.0", cniVersions: [1] })[0]).toStartWith("error: ");
  });

  test("a single plugin's file", () => {
    const conf = JSON.stringify({ cniVersion: "1.1.0", name: "n", type: "bridge", brigde: "b" });
    expect(lint(conf, {}, "n.conf")).toEqual([
      '1:50: warning: "brigde" is not known, and ignored; did you mean "bridge"?',
    ]);
  });

  test("a plugin in the network's folder", () => {
    mkdirSync(`${configs}/n`);
    writeFileSync(`${configs}/n/10.conf`, '{"type": "tuning", "mut": 1}');
    writeFileSync(`${configs}/n.conflist`, list({ type: "loopback" }));
    expect(run(["lint"]).stdout)
      .toBe(`${configs}/n/10.conf:1:20: warning: "mut" is not known, and ignored; did you mean "mtu"?\n`);
  });
});

test("hidden networks are found, with the file that hides them", () => {
  writeFileSync(`${configs}/10.conflist`, '{\n "name": "a",\n "plugins" [] }');
  writeFileSync(`${configs}/20.conflist`, list({ type: "loopback" }));
  expect(run(["lint"])).toEqual({
    code: 1,
    stdout: `${configs}/10.conflist:3:12: error: ":" expected, found "["\n` +
      `${configs}/20.conflist:1:1: error: "name" network "n" cannot be reached: ${configs}/10.conflist comes first, and cannot be read\n`,
    stderr: "",
  });
  writeFileSync(`${configs}/10.conflist`, list({ type: "loopback" }));
  expect(run(["lint"]).stdout).toContain(`${configs}/10.conflist comes first, and has the same name\n`);
});

describe("a plugin that waits for a capability which no engine passes", () => {
  const subnet = { type: "host-local", subnet: "10.1.0.0/24" };
  const rows: [plugin: object, lacking: string | undefined, of?: string][] = [
    [{ type: "portmap" }, "portMappings"],
    [{ type: "portmap", capabilities: { portMappings: false } }, "portMappings"],
    [{ type: "portmap", capabilities: { portMappings: true } }, undefined],
    [{ type: "portmap", runtimeConfig: { portMappings: [] } }, undefined],
    [{ type: "bandwidth" }, "bandwidth"],
    [{ type: "bandwidth", capabilities: { bandwidth: true } }, undefined],
    [{ type: "bandwidth", egressRate: 8000, egressBurst: 8000 }, undefined],
    [{ type: "host-device", ipam: subnet }, "deviceID"],
    [{ type: "host-device", ipam: subnet, device: "eth1" }, undefined],
    [{ type: "ptp", ipam: { type: "host-local" } }, "ipRanges", "host-local"],
    [{ type: "ptp", ipam: { type: "host-local" }, capabilities: { ipRanges: true } }, undefined],
    [{ type: "ptp", ipam: subnet }, undefined],
  ];
  for (const [plugin, lacking, of = (plugin as { type: string }).type] of rows) {
    test(JSON.stringify(plugin), () =>
      expect(ofPlugin(plugin)).toEqual(
        lacking === undefined
          ? []
          : [`warning: "capabilities" lacks "${lacking}": true, so no engine tells ${of} what to do`],
      ));
  }
});

test("comments and trailing commas are noted once, where the first is", () => {
  const conf = list({ type: "loopback" });
  const at = (text: string) => lint(text).map((line) => line.split(" ").slice(0, 2).join(""));
  expect(at(conf)).toEqual([]);
  expect(at(`${conf} // end`)).toEqual([`1:${conf.length + 2}:note:`]);
  expect(at(conf.replace("]}", ",]}"))).toEqual([`1:${conf.indexOf("]}") + 1}:note:`]);
  expect(at(`/* begin */ ${conf.replace("]}", ",]}")}`)).toEqual(["1:1:note:"]);
  expect(run(["lint"]).code).toBe(0);
});

test("a file that is not there, and an empty directory", () => {
  const missing = { code: 1, stdout: `${configs}/x:1:1: error: no such file\n`, stderr: "" };
  expect(run(["lint", `${configs}/x`])).toEqual(missing);
  const read = "networks are in files whose names end in .conflist, .conf, .json";
  expect(run(["lint"])).toEqual({ code: 0, stdout: `${configs}:1:1: note: has no network: ${read}\n`, stderr: "" });
  writeFileSync(`${configs}/60-x.conflst`, "{}");
  writeFileSync(`${configs}/README`, "");
  expect(run(["lint"])).toMatchObject({
    code: 1,
    stdout: `${configs}/60-x.conflst:1:1: warning: is not read: ${read}; did you mean ".conflist"?\n`,
  });
  const nowhere = run(["lint"], { NETCONFPATH: `${configs}/nowhere` });
  expect(nowhere).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("nowhere: no such directory; --config-dir"),
  });
});

test("files that cannot be opened are findings like others, and what comes behind them is checked", () => {
  Bun.spawnSync(["mkfifo", `${configs}/a.conflist`]);
  symlinkSync("/nowhere", `${configs}/b.conflist`);
  symlinkSync("/proc/self/mem", `${configs}/c.conflist`);
  writeFileSync(`${configs}/z.conflist`, "{");
  const { code, stdout, stderr } = run(["lint"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  for (
    const [file, reason] of [["a", "not a regular file"], ["b", "no such file"], ["c", ""], ["z", "end of the file"]]
  ) {
    const line = stdout.split("\n").find((one) => one.startsWith(`${configs}/${file}.conflist:1:`));
    expect(line).toContain(`error: `);
    expect(line).toContain(reason!);
  }
});

test("the examples have no findings", () => {
  const examples = resolve(import.meta.dir, "../../../examples");
  const names = readdirSync(examples, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".conflist")
  );
  expect(names).toContain("oci/front.conflist");
  const files = names.map((name) => `${examples}/${name}`), env = { PATCHBAY_STATE_DIR: `${at.directory}/run` };
  // The host of one of them is a node of a cluster.
  serveIn(env.PATCHBAY_STATE_DIR);
  expect(run(["lint", ...files], env)).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(run(["lint", examples], env)).toEqual({ code: 0, stdout: "", stderr: "" });
});

describe("capability arguments that nobody takes", () => {
  const declared = { type: "tuning", capabilities: { mac: true, "io.example/own": true } };
  const rows: [args: object, told: string[]][] = [
    [{}, []],
    [{ mac: "02:00:00:00:00:01", "io.example/own": 1 }, []],
    [{ portmappings: [] }, ['"portmappings": no plugin of network n takes it; did you mean "portMappings"?']],
    [{ "io.exmaple/own": 1 }, ['"io.exmaple/own": no plugin of network n takes it; did you mean "io.example/own"?']],
    [{ portMappings: [] }, [
      '"portMappings": no plugin of network n takes it; a plugin that does needs "capabilities": {"portMappings": true}',
    ]],
    ...["constructor", "toString", "valueOf"].map((name): [object, string[]] => [{ [name]: 1 }, [
      `"${name}": no plugin of network n takes it; a plugin that does needs "capabilities": {"${name}": true}`,
    ]]),
    [{ something: 1, ipRange: [] }, [
      '"something": no plugin of network n takes it; a plugin that does needs "capabilities": {"something": true}',
      '"ipRange": no plugin of network n takes it; did you mean "ipRanges"?',
    ]],
  ];
  for (const [args, told] of rows) {
    test(JSON.stringify(args), () => {
      writeFileSync(`${configs}/n.conflist`, list({ type: "loopback" }, declared));
      const expected = told.map((line) => `patchbay: capability argument ${line}\n`).join("");
      const env = { CAP_ARGS: JSON.stringify(args) };
      for (const command of ["add", "plan"]) {
        const { stderr } = run([command, "n", "/x"], env);
        expect([command, stderr.slice(0, expected.length)]).toEqual([command, expected]);
        if (told.length === 0) expect(stderr).not.toContain("no plugin of network");
      }
      symlinkSync(PATCHBAY, `${at.directory}/cnitool`);
      expect(run(["add", "n", "/x"], env, `${at.directory}/cnitool`).stderr).not.toContain("no plugin of network");
    });
  }
});

test("add, plan and status warn of misspellings on stderr, cnitool does not", () => {
  writeFileSync(`${configs}/n.conflist`, list({ type: "loopback", capabilties: {} }, { type: "tuning", other: 1 }));
  const slip = `${configs}/n.conflist:1:64: warning: "plugins[0].capabilties" is not known, and ignored; ` +
    'did you mean "capabilities"?\n';
  const cache = ["--cache-dir", at.runtime.cacheDirectory];
  expect(run(["status", "n", ...cache])).toEqual({ code: 0, stdout: "ready\n", stderr: slip });
  for (const command of ["add", "plan"]) expect(run([command, "n", "/x"]).stderr).toStartWith(slip);
  for (const command of ["check", "del"]) expect(run([command, "n", "/x", ...cache]).stderr).not.toContain(slip);
  symlinkSync(PATCHBAY, `${at.directory}/cnitool`);
  expect(run(["status", "n", "/x", ...cache], {}, `${at.directory}/cnitool`)).toEqual({
    code: 0,
    stdout: "",
    stderr: "",
  });
});
