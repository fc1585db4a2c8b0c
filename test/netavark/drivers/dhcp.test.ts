/** Networks of podman's whose addresses a DHCP server gives, by the service that the CNI plugin dhcp uses. */
import { expect, test } from "bun:test";
import { openScene, routesIn, untilLeased } from "../../support/dhcp/scene.ts";
import { kindsOf } from "../../support/dhcp/scripted-server.ts";
import { attach, bridgeNetwork, containerIn } from "../../support/netavark/attached.ts";
import { leftSince, momentOf } from "../../support/leftovers.ts";
import { ND } from "../../support/netavark/names.ts";

const KEPT = new RegExp(`^[-+] (file ${ND}/|.* (neighbour|link operstate))`);
const address = "192.168.77.50";

for (const driver of ["bridge", "macvlan"]) {
  test.each([["the network's", "7"], ["netavark's", undefined]])(
    `${driver}: an address, a route with %s metric, and the lease is given back`,
    async (_, metric) => {
      await using scene = await openScene({ address, leaseSeconds: 600 });
      const { machine, service, server } = scene, container = await machine.container();
      await machine.sh(`ip link set lo up`, { in: container });
      await machine.sh(`mkdir -p /run/cni; ln -s ${service.socket} /run/cni/dhcp.sock`);
      const before = await momentOf(machine);
      const network = bridgeNetwork(8, {
        driver,
        network_interface: "br0",
        options: { ...metric !== undefined && { metric }, ...driver === "bridge" && { mode: "unmanaged" } },
        ipam_options: { driver: "dhcp" },
        subnets: [],
      });
      const input = { ...containerIn([{ network }]), container_hostname: "larder" };
      const { code, json, stderr } = await attach(machine, "setup", container, input);
      expect([code, stderr, json.error]).toEqual([0, "", undefined]);
      expect(json.net8.interfaces.eth0.subnets).toEqual([{ gateway: "192.168.77.1", ipnet: `${address}/24` }]);
      await untilLeased(scene, container, address);
      expect(await routesIn(scene, container)).toEqual([`default via 192.168.77.1 metric ${metric ?? 100}`]);
      expect(await machine.sh("ip route show default", { in: container })).toContain("proto static");
      expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
      await server.until((received) => kindsOf(received).includes("RELEASE"));
      expect(await leftSince(before, machine, KEPT)).toEqual([]);
    },
  );
}

test("without the service, an error that says how to start it", async () => {
  await using scene = await openScene({ address, leaseSeconds: 600 });
  const container = await scene.machine.container();
  const network = bridgeNetwork(8, {
    driver: "macvlan",
    network_interface: "br0",
    ipam_options: { driver: "dhcp" },
    subnets: [],
  });
  const { code, json } = await attach(scene.machine, "setup", container, containerIn([{ network }]));
  expect(code).toBe(1);
  expect(json.error).toMatch(/dhcp\.sock.*patchbay dhcp/s);
});
