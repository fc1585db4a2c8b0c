/** `dhcp daemon` as service managers and people start it: flags, a socket that is handed over, the word that it is ready. */
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { type Segment, serverBehindBridge } from "../../../support/dhcp/link.ts";
import { serveScript, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { startService } from "../../../support/dhcp/service.ts";
import { connectFrom, say } from "../../../support/dhcp/raw-client.ts";
import { isListening } from "../../../support/listening.ts";
import { PATCHBAY, patchbayPlugins } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";

const address = "192.168.77.50";
const daemon = [join(patchbayPlugins(), "dhcp"), "daemon"];
const report = { text: '{"version":1,"do":"report","network":"net"}\n' };

test("-broadcast is on the wire, -hostprefix before paths, -timeout and -resendtimeout give up early", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment, host = join(folder, "host");
  symlinkSync("/", host);
  const server = await serveScript(segment.site, { address });
  const flags = ["-broadcast", "-timeout=200ms", "-resendmax", "300ms", "--resendtimeout", "2s"];
  await using service = await startService(segment, { flags });
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  expect(server.received().map(({ broadcast }) => broadcast)).not.toContain(false);
  await net.del(container);
  server.change({ rules: { any: SILENT } });
  const seen = server.received().length, failed = await net.call("ADD", container);
  expect(failed.json).toMatchObject({ msg: expect.stringContaining("no more tries"), details: "waited 2 s" });
  expect(server.received().slice(seen).length).toBeGreaterThan(4);
  await service.stop();

  server.change({ rules: {} });
  const socket = "/run/prefixed.sock", command = [...daemon, "-hostprefix", host, "-socketpath", socket];
  const prefixed = segment.start(undefined, [...command, "-datadir", join(folder, "prefixed")], {
    log: join(folder, "log"),
  });
  await prefixed.until(() => isListening(machine, `${host}${socket}`));
  const there = service.network({}, { daemonSocketPath: socket, dataDir: join(folder, "prefixed") });
  expect((await there.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  expect(await machine.sh(`cat ${folder}/prefixed/*.lease`)).toContain(`"netnsPath":"${host}/var/run/netns/c1"`);
  await there.del(container);
  await prefixed.stop();
});

test("flags that are none: the usage and exit status 2; a relative file of the process id: exit status 1", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const unknown = await machine.run([...daemon, "-nothing"]);
  expect(unknown).toMatchObject({ code: 2, stdout: "" });
  expect(unknown.stderr).toStartWith("flag provided but not defined: -nothing\nUsage of daemon:\n");
  const relative = await machine.run([...daemon, "-pidfile", "x.pid"]);
  expect(relative).toMatchObject({ code: 1, stderr: `Error writing pidfile "x.pid": path not absolute\n` });
  expect((await machine.run([PATCHBAY, "dhcp", "--nothing"])).code).toBe(2);
  const soon = await machine.run([PATCHBAY, "dhcp", "--timeout=soon"]);
  expect(soon).toMatchObject({ code: 2, stdout: "" });
  expect(soon.stderr).toBe(
    'patchbay dhcp: invalid value "soon" for flag --timeout: a duration such as 1m30s expected\n' +
      "Usage: patchbay dhcp [OPTIONS]\nSee 'patchbay help dhcp'.\n",
  );
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s: exit status 0, and neither socket nor file of the process id",
  async (signal) => {
    await using segment = await serverBehindBridge();
    const { machine, folder } = segment, files = [join(folder, "own.sock"), join(folder, "own.pid")];
    const flags = ["-socketpath", files[0]!, "-pidfile", files[1]!, "-datadir", join(folder, "own")];
    const service = machine.start(["setpriv", "--pdeathsig", "KILL", ...daemon, ...flags]);
    await untilTrue(() => files.every((path) => existsSync(path)), Boolean);
    expect(await say(machine, files[0]!, report)).toContain('"report"');
    service.kill(signal);
    expect(await service.exited).toBe(0);
    const begun = `patchbay dhcp: holds the leases in ${folder}/own, and listens on ${files[0]}\n`;
    expect(await service.stderr.text()).toBe(`${begun}0 leases stay\n`);
    expect(files.filter((path) => existsSync(path))).toEqual([]);
  },
);

async function activated(segment: Segment, socket: string, command: readonly string[]) {
  const log = join(segment.folder, "activated.log");
  const activator = segment.start(undefined, ["systemd-socket-activate", "-l", socket, ...command], { log });
  await activator.until(() => existsSync(socket));
  return activator;
}

test("a socket that systemd hands over stays in its place; of two, Go's words", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  await serveScript(segment.site, { address });
  const service = await startService(segment);
  await service.stop();
  const { socket, directory } = service;
  const command = [...daemon, "-socketpath", socket, "-datadir", directory];
  const activator = await activated(segment, socket, command);
  expect(readFileSync(`/proc/${activator.pid}/comm`, "utf8")).toBe("systemd-socket-\n");
  const container = await machine.container("c1"), net = service.network();
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  await net.del(container);
  await activator.stop();
  expect(existsSync(socket)).toBe(true);

  // Its own flag may say another path than systemd's unit.
  const elsewhere = join(folder, "elsewhere.sock");
  const other = await activated(segment, elsewhere, command.with(-3, join(folder, "never.sock")));
  expect(await say(machine, elsewhere, report)).toContain('"report"');
  await other.stop();

  const two = join(folder, "two.sock"), log = join(folder, "two.log");
  const sockets = ["systemd-socket-activate", "-l", two, "-l", join(folder, "three.sock")];
  const refused = segment.start(undefined, [...sockets, ...command], { log });
  await refused.until(() => existsSync(two));
  await connectFrom(machine, two, { text: "" });
  await untilTrue(() => refused.hasEnded, Boolean);
  expect(refused.log()).toContain("Too many (2) FDs passed through socket activation");
});

test("says when it is ready, and when it stops", async () => {
  await using segment = await serverBehindBridge();
  const { folder } = segment, listener = join(folder, "notify.sock"), log = join(folder, "notify.log");
  const manager = segment.start(undefined, [process.execPath, "-e", listenerProgram, listener], { log });
  await manager.until(() => existsSync(listener));
  await using service = await startService(segment, { env: { NOTIFY_SOCKET: listener } });
  await untilTrue(() => manager.log(), (text) => text.includes("READY=1"));
  await service.stop();
  await untilTrue(() => manager.log(), (text) => text.includes("STOPPING=1"));
});

/** Prints the datagrams that come to the address. */
const listenerProgram = `
  import { bind, check, libc } from "${import.meta.dir}/../../../../src/ffi/libc.ts";
  import { unixAddress } from "${import.meta.dir}/../../../../src/ffi/socket/unix.ts";
  const fd = libc.socket(1, 2, 0), address = unixAddress(process.argv.at(-1));
  check("bind", libc.bind(fd, address, address.length));
  const bytes = new Uint8Array(4096);
  for (;;) {
    const length = Number(libc.recvfrom(fd, bytes, bytes.length, 0, null, null));
    console.log(new TextDecoder().decode(bytes.subarray(0, length)));
  }
`;
