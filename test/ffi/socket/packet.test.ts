/** Packets on a link, with who sent them and whether their sums count, and datagrams of UDP by one link only. */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";

test("packets and datagrams arrive as they were sent, those that a filter keeps", async () => {
  await using machine = await openMachine();
  await machine.sh(`
    ip link add name a address 02:00:00:00:00:0a type veth peer name b address 02:00:00:00:00:0b
    sysctl -qw net.ipv6.conf.a.accept_dad=0 net.ipv6.conf.b.disable_ipv6=1
    ip link set dev b arp off up
    ip link set dev a arp off up
    ip address add 10.9.0.1/24 dev a
    ip -6 address add fe80::5/64 dev a nodad
    ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:0b dev a
  `);
  const { code, stdout, stderr } = await machine.run([process.execPath, `${import.meta.dir}/session.ts`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const macA = "02:00:00:00:00:0a";
  expect(JSON.parse(stdout)).toEqual({
    nothingYet: null,
    toAll: ["010203", macA, true],
    toOne: ["04", macA, true],
    nothingOfOurs: null,
    frame: ["0909", "02:00:00:00:00:cc", true],
    filtered: [["07", macA, true], null],
    unsummed: [macA, false],
    noLink: "bind AF_PACKET link 9999: no such device",
    noFrame: "sendto AF_PACKET: no such device or address",
    v4: [null, "010203", "127.0.0.1", "05"],
    v6: [null, "010203", "::1", "05"],
    twice: null,
    refused: [
      "setsockopt SO_BINDTODEVICE none: no such device",
      "bind port 7001: cannot assign requested address",
      "sendto: network is unreachable",
    ],
    down: "recvmsg AF_PACKET: network is down",
  });
});
