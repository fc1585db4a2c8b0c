/** podman's `isolate` holds between bridges in a VRF, which rules see in a bridge's place as the link that a packet came by. */
import { expect, test } from "bun:test";
import { openWorld } from "../support/hostile.ts";
import { lacks } from "../support/kernel-features.ts";
import { attach, bridgeNetwork, containerIn } from "../support/netavark/attached.ts";
import { ping } from "../support/traffic.ts";

const isolations = ["false", "true", "strict"];

test.skipIf(lacks("VRF links"))("isolated networks in a VRF do not reach each other", async () => {
  await using machine = await openWorld();
  await machine.sh("ip link add blue type vrf table 10; ip link set blue up");
  const [eight, nine] = [await machine.container("eight"), await machine.container("nine")];
  const inputs = (isolate: string) =>
    [8, 9].map((number) =>
      containerIn([{ network: bridgeNetwork(number, { options: { isolate, vrf: "blue" } }) }], number)
    );
  for (const isolate of isolations) {
    const both = inputs(isolate);
    for (const [at, container] of [eight, nine].entries()) {
      expect(await attach(machine, "setup", container, both[at]!)).toMatchObject({ code: 0, stderr: "" });
    }
    const reached: boolean[] = await Promise.all([
      ping(machine, eight, "10.89.0.19"),
      ping(machine, eight, "fd00:9::19"),
      ping(machine, nine, "10.88.0.18"),
      ping(machine, nine, "fd00:8::18"),
    ]);
    expect({ isolate, reached }).toEqual({ isolate, reached: Array(4).fill(isolate === "false") });
    for (const [at, container] of [eight, nine].entries()) {
      expect(await attach(machine, "teardown", container, both[at]!)).toMatchObject({ code: 0, stderr: "" });
    }
    expect(await machine.sh("nft list table inet netavark")).not.toMatch(/podman[89]/);
  }
});
