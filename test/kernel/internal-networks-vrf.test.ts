/** A container of an internal network of podman's reaches nobody outside, also by the VRF that rules see in the bridge's place. */
import { expect, test } from "bun:test";
import { openWorld } from "../support/hostile.ts";
import { lacks } from "../support/kernel-features.ts";
import { attach, bridgeNetwork, containerIn } from "../support/netavark/attached.ts";
import { untilTrue } from "../support/until-true.ts";

test.skipIf(lacks("VRF links"))("nothing gets out of an internal network in a VRF", async () => {
  await using machine = await openWorld();
  await machine.sh("ip link add blue type vrf table 10; ip link set blue up");
  const bad = await machine.container("bad");
  const input = containerIn([{ network: bridgeNetwork(8, { internal: true, options: { vrf: "blue" } }) }]);
  expect(await attach(machine, "setup", bad, input)).toMatchObject({ code: 0, stderr: "" });
  await machine.sh(`
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    ip -n world address add fd99::254/64 dev eth0 nodad
    ip route add default via 192.0.2.254 dev up0 table 10; ip -6 route add default via fd99::254 dev up0 table 10
    ip -n bad route add default via 10.88.0.1; ip -n bad -6 route add default via fd00:8::1
    ip netns exec world nft -f - <<END
      table inet arrived {
        counter four { }
        counter six { }
        chain prerouting {
          type filter hook prerouting priority -300;
          meta nfproto ipv4 udp dport 7001 counter name four
          meta nfproto ipv6 udp dport 7001 counter name six
        }
      }
END`);
  const send = (to: string) => machine.sh(`bash -c 'echo hello > /dev/udp/${to}/7001'`, { in: bad });
  const packets = (text: string) => [...text.matchAll(/packets (\d+)/g)].map(([, count]) => Number(count));
  const arrived = async () => packets(await machine.sh("ip netns exec world nft list counters table inet arrived"));
  const dropped = async () => packets(await machine.sh("nft list counters table inet patchbay_internal"))[0]!;
  for (const to of ["192.0.2.254", "fd99::254"]) {
    const before = await dropped();
    await send(to);
    await untilTrue(dropped, (count) => count > before);
  }
  expect(await arrived()).toEqual([0, 0]);
  await machine.sh("nft delete table inet patchbay_internal");
  for (const to of ["192.0.2.254", "fd99::254"]) await send(to);
  await untilTrue(arrived, (counts) => counts.every((count) => count > 0));
});
