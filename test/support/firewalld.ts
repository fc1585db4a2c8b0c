/** A message bus for a machine (dbus-daemon(1)), and a service on it that answers like firewalld. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Machine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

const CONFIG = `<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>`;

export async function startBus(machine: Machine): Promise<AsyncDisposable> {
  await machine.sh(`mkdir -p /run/dbus; cat > /run/dbus/bus.conf`, { stdin: CONFIG });
  const daemon = machine.start(["dbus-daemon", "--config-file=/run/dbus/bus.conf", "--nofork", "--print-address"]);
  await daemon.stdout.getReader().read();
  return {
    async [Symbol.asyncDispose]() {
      daemon.kill();
      await daemon.exited;
    },
  };
}

/**
 * A bus that does not answer. When it is silent, or talks of something else, callers wait for the answer; when it is full,
 * for the connection.
 */
export async function startHungBus(machine: Machine, state: "silent" | "talking" | "full"): Promise<AsyncDisposable> {
  await machine.sh("mkdir -p /run/dbus; rm -f /run/dbus/system_bus_socket");
  const bus = machine.start([process.execPath, resolve(import.meta.dir, "hung-bus.ts"), state]);
  const { value } = await bus.stdout.getReader().read();
  if (value === undefined) throw new Error(await bus.stderr.text());
  return {
    async [Symbol.asyncDispose]() {
      await bus.stdin.end();
      await bus.exited;
    },
  };
}

/** firewalld itself, in the machine's namespaces and with its configuration in /run. */
export interface RealFirewalld extends AsyncDisposable {
  /** What firewall-cmd(1) prints. */
  command(...words: string[]): Promise<string>;
  /** Without a chance to tidy up. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export async function startRealFirewalld(machine: Machine): Promise<RealFirewalld> {
  const program = ["firewalld", "--nofork", "--nopid", "--log-target=console", "--system-config=/run/firewalld"];
  let service: ReturnType<Machine["start"]> | undefined;
  const firewalld: RealFirewalld = {
    async command(...words) {
      return (await machine.sh(`firewall-cmd ${words.join(" ")}`)).trim();
    },
    async kill() {
      service?.kill("SIGKILL");
      await service?.exited;
    },
    async start() {
      service = machine.start(["sh", "-c", `exec ${program.join(" ")} </dev/null >/run/firewalld.log 2>&1`]);
      await untilTrue(async () => (await machine.run(["firewall-cmd", "--state"])).code, (code) => code === 0);
    },
    [Symbol.asyncDispose]: () => firewalld.kill(),
  };
  await machine.sh("mkdir -p /run/firewalld");
  await firewalld.start();
  return firewalld;
}

export interface Firewalld extends AsyncDisposable {
  /** All sources as `[source, zone]`, after the last change. */
  sources(): [string, string][];
}

/** `strictForwardPorts`: a property that firewalld has since 2.3. */
export async function startFirewalld(machine: Machine, strictForwardPorts = "no"): Promise<Firewalld> {
  const folder = mkdtempSync(join(tmpdir(), "firewalld-")), sources = join(folder, "sources");
  writeFileSync(sources, "[]");
  const service = machine.start([
    process.execPath,
    resolve(import.meta.dir, "fake-firewalld.ts"),
    sources,
    strictForwardPorts,
  ]);
  const { value } = await service.stdout.getReader().read();
  if (value === undefined) throw new Error(await service.stderr.text());
  return {
    sources: () => JSON.parse(readFileSync(sources, "utf8")),
    async [Symbol.asyncDispose]() {
      await service.stdin.end();
      await service.exited;
      rmSync(folder, { recursive: true });
    },
  };
}
