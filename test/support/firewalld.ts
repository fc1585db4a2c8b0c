/** A message bus for a machine (dbus-daemon(1)), and a service on it that answers like firewalld. */
import { resolve } from "node:path";
import type { Machine } from "./machine.ts";

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

/** A bus that does not answer. When it is silent, callers wait for the answer; when it is full, for the connection. */
export async function startHungBus(machine: Machine, state: "silent" | "full"): Promise<AsyncDisposable> {
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

export interface Firewalld extends AsyncDisposable {
  /** All sources as `[source, zone]`, after the last change. */
  sources(): [string, string][];
}

export async function startFirewalld(machine: Machine): Promise<Firewalld> {
  const service = machine.start([process.execPath, resolve(import.meta.dir, "fake-firewalld.ts")]);
  let last = "[]";
  const { promise, resolve: ready, reject } = Promise.withResolvers<void>();
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of service.stdout) {
      for (const line of decoder.decode(chunk).trim().split("\n")) line === "ready" ? ready() : last = line;
    }
    reject(new Error(await service.stderr.text()));
  })();
  await promise;
  return {
    sources: () => JSON.parse(last),
    async [Symbol.asyncDispose]() {
      await service.stdin.end();
      await service.exited;
      await reading;
    },
  };
}
