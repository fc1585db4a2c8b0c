/** `netavark dhcp-proxy`: where its socket is. What it does there is in test/frontends/netavark/dhcp.test.ts. */
import { expect, test } from "bun:test";
import { flagsOf } from "../../../../src/frontends/netavark/program/dhcp-proxy.ts";
import { openMachine } from "../../../support/machine.ts";
import { netavarkProgram } from "../../../support/netavark/netavark.ts";
import { untilTrue } from "../../../support/until-true.ts";

test.each<[given: Record<string, string>, patience: number | undefined, idleAfter: number | undefined]>([
  [{}, undefined, 300],
  [{ timeout: "7" }, 7, 300],
  [{ "activity-timeout": "20" }, undefined, 20],
  [{ "activity-timeout": "0" }, undefined, undefined],
])("%j: a call waits for %p seconds, and the service ends after %p without one", (given, patience, idleAfter) => {
  expect(flagsOf({ values: (name) => [given[name] ?? []].flat() })).toMatchObject({ patience, idleAfter });
});

const places: [args: string[], env: Record<string, string>, socket: string][] = [
  [[], {}, "/run/podman/nv-proxy.sock"],
  [["--dir", "/run/a"], {}, "/run/a/nv-proxy.sock"],
  [["--dir", "/run/a"], { NETAVARK_PROXY_RUN_DIR_ENV: "/run/b" }, "/run/b/nv-proxy.sock"],
  [["--dir", "/run/a", "--uds", "/run/c/own.sock"], {}, "/run/c/own.sock"],
  [["--uds", "/run/b"], {}, "/run/b/nv-proxy.sock"],
];

test("the socket is where podman's units, an option or the environment say", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir /run/podman /run/a /run/b /run/c");
  for (const [args, env, socket] of places) {
    const command = [
      "env",
      ...Object.entries(env).map((pair) => pair.join("=")),
      netavarkProgram(),
      "dhcp-proxy",
      ...args,
    ];
    const service = machine.start(command);
    const sockets = () => machine.sh("find /run -name '*.sock' -type s");
    expect(await untilTrue(sockets, (found) => found !== "")).toBe(`${socket}\n`);
    service.kill("SIGTERM");
    expect(await service.exited).toBe(0);
    expect(await sockets()).toBe("");
  }
});
