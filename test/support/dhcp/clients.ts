/** Well-known clients, to see that a server of a test serves: busybox's udhcpc, and ISC's dhclient for IPv6. */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container } from "../machine.ts";
import { untilTrue } from "../until-true.ts";
import type { Segment } from "./link.ts";
import type { Running } from "./running.ts";
import { ownCopy, touch } from "./server.ts";

export interface Client extends AsyncDisposable {
  /** The address that the server said, without the prefix length. */
  readonly address: string;
  release(): Promise<void>;
}

export interface Udhcpc extends Client {
  /** Begins to; whether it succeeds, a server says. */
  renew(): void;
}

let count = 0;

function newFolder(segment: Segment, name: string): string {
  const folder = join(segment.folder, `${name}-${++count}`);
  mkdirSync(folder);
  return folder;
}

/** Writes each event to a file, and sets the address: a release comes from it. */
const EVENTS = `#!/bin/sh
case $1 in
  deconfig) ip -4 address flush dev $interface ;;
  bound|renew) ip address replace $ip/$mask dev $interface ;;
esac
echo $1 $ip >>EVENTS
`;

/** Gets an address for the container's eth0. `options` are udhcpc's, as in `-x hostname:c1`. */
export async function udhcpc(segment: Segment, container: Container, options: string[] = []): Promise<Udhcpc> {
  const folder = newFolder(segment, "udhcpc"), events = join(folder, "events"), script = join(folder, "script");
  writeFileSync(script, EVENTS.replace("EVENTS", events));
  chmodSync(script, 0o755);
  touch(events);
  const command = ["busybox", "udhcpc", "-f", "-i", "eth0", "-s", script, "-T", "1", "-t", "120", ...options];
  const running = segment.start(container, command, { log: join(folder, "log") });
  const said = async () => await Bun.file(events).text();
  await running.until(async () => / bound /.test(` ${(await said()).replaceAll("\n", " ")}`));
  const address = /^bound (.*)$/m.exec(await said())![1]!;
  return {
    address,
    renew: () => running.signal("SIGUSR1"),
    async release() {
      const before = deconfigured(await said());
      running.signal("SIGUSR2");
      await untilTrue(said, (text) => deconfigured(text) > before);
    },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}

function deconfigured(events: string): number {
  return events.split("\n").filter((line) => line.startsWith("deconfig")).length;
}

/** Gets a lease for the container's eth0. The address is not set on the link: messages come from the link-local one. */
export async function dhclient6(segment: Segment, container: Container): Promise<Client> {
  const folder = newFolder(segment, "dhclient"), leases = join(folder, "leases");
  const pid = join(folder, "pid"), log = join(folder, "log");
  touch(leases);
  const files = ["-cf", "/dev/null", "-lf", leases, "-pf", pid, "-sf", "/bin/true"];
  const start = (...mode: string[]): Running =>
    segment.start(container, [ownCopy("dhclient", { folder }), "-6", "-d", "-v", ...mode, ...files, "eth0"], { log });
  const running = start();
  const found = async () => /iaaddr (\S+) \{/.exec(await Bun.file(leases).text())?.[1];
  await running.until(async () => await found() !== undefined);
  return {
    address: (await found())!,
    async release() {
      await running.stop();
      // It would end the process that has this number now.
      rmSync(pid, { force: true });
      const releasing = start("-r");
      await untilTrue(() => releasing.hasEnded, Boolean);
    },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}
