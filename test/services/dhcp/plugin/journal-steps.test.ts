/** The service killed at each step of its journal, by strace(1): nothing is left of an ADD that failed, nothing is lost. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { type Segment } from "../../../support/dhcp/link.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { kindsOf } from "../../../support/dhcp/scripted-server.ts";
import { type Service } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

const address = "192.168.77.50";
const steps = ["openat", "fsync"].concat(process.arch === "arm64" ? ["renameat", "unlinkat"] : ["rename", "unlink"]);

let count = 0;

/** Kills the service as it enters the call for the nth time from now on. Answers how to find out whether it was killed. */
async function killAt({ folder, start }: Segment, service: Service, syscall: string, nth: number) {
  const log = join(folder, `strace-${++count}`);
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:signal=KILL:when=${nth}`];
  const tracer = start(undefined, ["strace", "-f", "-p", String(service.pid), ...inject], { log });
  await tracer.until(() => tracer.log().includes("attached"));
  return async () => {
    const isKilled = tracer.log().includes("killed by SIGKILL") || service.hasEnded;
    await tracer.stop();
    return isKilled;
  };
}

test.each(steps)("at %s", async (syscall) => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, machine, server, service } = scene;
  const net = service.network({}, { acd: "none" }), container = await machine.container("c1");
  let kills = 0;
  for (const command of ["ADD", "DEL"] as const) {
    for (let nth = 1, isKilled = true; isKilled; nth++) {
      if (command === "DEL") await net.add(container);
      const wasKilled = await killAt(segment, service, syscall, nth);
      const { code } = await net.call(command, container);
      isKilled = await wasKilled();
      if (!isKilled) expect(code).toBe(0);
      else kills++;
      await service.restart("SIGKILL");
      const seen = server.received().length;
      if (command === "ADD" && code === 0) {
        await net.check(container);
        expect(kindsOf(server.received().slice(seen))).toEqual([]);
      }
      // A DEL works whether or not a service runs.
      if (command === "DEL") expect(code).toBe(0);
      await net.del(container);
      await untilTrue(() => readdirSync(service.directory).join(), (names) => names === "lock");
    }
  }
  expect(kills).toBeGreaterThan(0);
  expect((await net.add(container)).ips[0].address).toBe(`${address}/24`);
});
