/** Which calls a resident leaves to the caller, and why. What depends on the host is in runtime.test.ts. */
import { expect, test } from "bun:test";
import { endCall, reasonLeft, takeCall } from "../../../src/process/calls.ts";
import { ask } from "../../../src/services/dhcp/ask.ts";
import { openSystemBus } from "../../../src/interop/firewalld/bus.ts";
import { closeFile } from "../../../src/ffi/files.ts";
import { SOCK_STREAM } from "../../../src/ffi/socket/socket.ts";
import { listenAt } from "../../../src/ffi/socket/unix.ts";
import { runTrusted } from "../../../src/process/trusted-executable.ts";
import { ScratchFile } from "../../support/scratch-file.ts";
import { takeEnvironment } from "../../../src/ffi/environment.ts";
import { utf8 } from "../../../src/ffi/libc.ts";
import { reasonToDecline, reasonToKeep } from "../../../src/frontends/resident/declining.ts";
import { runCommandLine } from "../../../src/frontends/cli/command-line.ts";
import { parseNetwork } from "../../../src/runtime/conf/network.ts";

/** A program of somebody else that every host has. */
const elsewhere = { CNI_PATH: "/usr/bin" }, foreign = "env";
const dhcp = { type: "dhcp" }, local = { type: "host-local" };

function reasonOf(name: string, stdin: unknown, variables: Record<string, string>) {
  takeEnvironment(utf8(Object.entries(variables).map((pair) => `${pair.join("=")}\0`).join("")));
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  return reasonToDecline({ argv: [name] }, () => utf8(text));
}

test.each<[reason: string, name: string, stdin: unknown, variables: Record<string, string>]>([
  ["served", "macvlan", { ipam: local }, {}],
  ["DHCP", "macvlan", { ipam: dhcp }, {}],
  ["DHCP", "accelerated-macvlan", { ipam: dhcp }, {}],
  ["DHCP", "dhcp", {}, {}],
  ["duplicate address detection", "bridge", { enabledad: true, ipam: dhcp }, {}],
  ["SELinux", "tap", { selinuxContext: "system_u:system_r:container_t:s0" }, {}],
  ["delegate", "flannel", {}, {}],
  ["foreign plugin", "macvlan", { ipam: { type: foreign } }, elsewhere],
  ["foreign plugin", "bridge", { enabledad: true, ipam: { type: foreign } }, elsewhere],
  ["DHCP", "dhcp", { ipam: { type: foreign } }, {}],
  ["DHCP", "macvlan", { ipam: dhcp }, elsewhere],
  ["served", "macvlan", { ipam: local }, elsewhere],
  ["served", "macvlan", { ipam: { type: "" } }, elsewhere],
  ["served", "macvlan", { ipam: { type: ["dhcp"] } }, {}],
  ["served", "macvlan", { ipam: "dhcp" }, {}],
  ["served", "dhcp", [{ ipam: dhcp }], {}],
  ["served", "dhcp", '{ "ipam":', {}],
  ["served", "dhcp", { ipam: dhcp }, { CNI_COMMAND: "VERSION" }],
  ["DHCP", "dhcp", { ipam: dhcp }, { CNI_COMMAND: "DEL" }],
  ["bus", "macvlan", { ipam: local }, { DBUS_SYSTEM_BUS_ADDRESS: "unix:path=/nowhere" }],
  ["bus", "bridge", {}, { DBUS_SYSTEM_BUS_ADDRESS: "" }],
])("%s: %s with %j and %j", (reason, name, stdin, variables) => {
  expect(reasonOf(name, stdin, variables) ?? "served").toBe(reason);
});

const ofTheProcess = "path of the process";
test.each<[reason: string, words: string, variables: Record<string, string>]>([
  ...["/proc/self/fd/9", "/proc/self/ns/net", "/dev/fd/9", "/dev/stdin", "/proc/thread-self/ns/net"]
    .map((path): [string, string, Record<string, string>] => [ofTheProcess, `patchbay del net ${path}`, {}]),
  [ofTheProcess, "patchbay --config-dir=/proc/self/cwd ls", {}],
  ...["CNI_NETNS", "CNI_PATH", "NETCONFPATH", "PATCHBAY_STATE_DIR"]
    .map((name): [string, string, Record<string, string>] => [ofTheProcess, "bridge", { [name]: "/dev/fd/3" }]),
  ["served", "patchbay del net /proc/1234/ns/net", { LOG: "/dev/stdout", PATH: "/proc/self/bin" }],
  ["served", "patchbay del net /run/netns/proc/selfish", {}],
])("%s: %s with %j", (reason, words, variables) => {
  takeEnvironment(utf8(Object.entries(variables).map((pair) => `${pair.join("=")}\0`).join("")));
  expect(reasonToDecline({ argv: words.split(" ") }, () => utf8("{}")) ?? "served").toBe(reason);
});

/** Why the command is left to the caller, or its exit status. */
function outcomeOf(words: string): unknown {
  takeCall({ id: () => undefined, isGone: () => false });
  try {
    const status = runCommandLine("patchbay", words.split(" "));
    return reasonLeft() ?? status;
  } finally {
    endCall();
  }
}

test.each(["dhcp", "--config-dir /etc/cni install", "serve --status", "--config-dir /etc/cni hook add"])(
  "patchbay %s is left to the caller",
  (words) => expect(outcomeOf(words)).toBe("command"),
);

test.each<[reason: string, plugins: object[], path: string]>([
  ["served", [{ type: "macvlan", ipam: local }, { type: "tuning" }], ""],
  ["DHCP", [{ type: "macvlan", ipam: dhcp }], ""],
  ["SELinux", [{ type: "macvlan", ipam: local }, { type: "tap", selinuxContext: "x" }], ""],
  ["aardvark-dns", [{ type: "netavark-bridge", aardvarkBinary: "/x", network: { dns_enabled: true } }], ""],
  ["DHCP", [{ type: "netavark-vlan", ipam: dhcp }], ""],
  ["foreign plugin", [{ type: "macvlan", ipam: local }, { type: foreign }], elsewhere.CNI_PATH],
  ["foreign plugin", [{ type: "macvlan", ipam: { type: foreign } }], elsewhere.CNI_PATH],
  // It is not found, and the call says so.
  ["served", [{ type: foreign }], ""],
])("%s: a network of %j, plugins from %j", (reason, plugins, pluginPath) => {
  const network = parseNetwork(JSON.stringify({ cniVersion: "1.1.0", name: "net", plugins }));
  expect(reasonToKeep(network.plugins, pluginPath) ?? "served").toBe(reason);
});

test("nobody's answer is awaited in the name of another process", () => {
  using scratch = new ScratchFile();
  const path = scratch.file, listening = listenAt(path, SOCK_STREAM);
  takeEnvironment(utf8(`DBUS_SYSTEM_BUS_ADDRESS=unix:path=${path}\0`));
  const waits: Record<string, () => unknown> = {
    "DHCP": () => ask(path, { do: "report", network: "net" }, 100),
    "firewalld": () => openSystemBus(100),
    "another program": () => runTrusted({ path: "/bin/true", argv: ["true"], environment: [] }, new Uint8Array()),
  };
  for (const [awaited, wait] of Object.entries(waits)) {
    takeCall({ id: () => undefined, isGone: () => false });
    expect(wait).toThrow(`left to the caller: ${awaited}`);
    expect(reasonLeft()).toBe(awaited);
    endCall();
    expect(reasonLeft()).toBeUndefined();
  }
  closeFile(listening);
});
