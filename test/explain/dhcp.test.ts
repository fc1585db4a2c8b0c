/**
 * Containers with addresses of a DHCP server, which is behind a port of their bridge, or behind the parent of their
 * macvlan: real packets pass or not, and `explain` says the same. What others break, the line that it prints mends.
 */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { type Segment, serverBehindBridge, serverBehindMaster } from "../support/dhcp/link.ts";
import { OFFER4 } from "../support/dhcp/offer.ts";
import { dnsmasq, serve4 } from "../support/dhcp/servers-v4.ts";
import { type Service, startService } from "../support/dhcp/service.ts";
import { lacks } from "../support/kernel-features.ts";
import { ownShare } from "../support/share.ts";
import { expectPasses, expectStopped, judgedOn, mendAll, setUpOf } from "./judged.ts";
import type { SetUp } from "./set-ups.ts";
import { nft } from "./town.ts";

const BESIDE = ["web", "jug", "tcp/80"];
const SERVER = ["web", "192.168.77.1", "tcp/7000"], BEYOND = ["web", "192.0.2.9", "tcp/7000"];

/** Without br_netfilter the host's rules are not asked about what stays on a bridge. */
const asksAboutBridged = existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables");
const judgedByHost: SetUp[] = [
  setUpOf("iptables' FORWARD judges frames of bridges", "iptables -P FORWARD DROP", SERVER, "forward-drop"),
  setUpOf(
    "iptables' FORWARD drops what leaves by the bridge, and no answer",
    "iptables -A FORWARD -d 192.168.77.1 -j DROP",
    SERVER,
    "forward-drop",
  ),
];

const everywhere: SetUp[] = [
  setUpOf("the address is gone", "ip -n web -4 address flush dev eth0", SERVER, "no-address"),
  setUpOf("the server's route is gone", "ip -n web route delete default", BEYOND, "no-route"),
  setUpOf("the container's link is down", "ip -n web link set eth0 down", SERVER, "link-down"),
];

const onBridge: SetUp[] = [
  ...everywhere,
  setUpOf("the bridge is down", "ip link set br0 down", SERVER, "link-down"),
  ...asksAboutBridged ? judgedByHost : [],
  setUpOf(
    "a rule of bridges drops what leaves by the port",
    nft("table bridge other { chain c { type filter hook postrouting priority 0; oifname p0 drop; } }"),
    SERVER,
    "bridge-drop",
  ),
  setUpOf(
    "both ports are isolated",
    "for each in p0 $port; do ip link set $each type bridge_slave isolated on; done",
    SERVER,
    "port-isolated",
    { mend: { script: "for each in p0 $port; do ip link set $each type bridge_slave isolated off; done" } },
  ),
  setUpOf(
    "the port to the server is down",
    "ip link set p0 down",
    SERVER,
    "nobody-answers",
    { verdict: "unknown", mend: { script: "ip link set p0 up" } },
  ),
];

const onMacvlan: SetUp[] = [
  ...everywhere,
  setUpOf("the parent is down", "ip link set m0 down", SERVER, "link-down"),
];

const places = [
  { what: "behind a port of the bridge", open: serverBehindBridge, setUps: onBridge, cannotRun: false },
  {
    what: "behind a macvlan's parent",
    open: serverBehindMaster,
    setUps: onMacvlan,
    cannotRun: lacks("macvlan links"),
  },
];

describe.each(places)("a DHCP server $what", ({ open, setUps, cannotRun }) => {
  let segment: Segment, service: Service, judged: Awaited<ReturnType<typeof judgedOn>>;
  beforeAll(async () => {
    if (cannotRun) return;
    segment = await open();
    await serve4(dnsmasq, segment.site, { ...OFFER4, leaseSeconds: 1000 });
    await segment.machine.sh("ip -n server address add 192.0.2.9/32 dev lo");
    service = await startService(segment);
    judged = await judgedOn(segment.machine, service.network(), segment.site.namespace);
  });
  afterAll(async () => {
    for (const each of [judged, service, segment]) await each?.[Symbol.asyncDispose]();
  });

  const passes = [[SERVER, "leaves"], [BEYOND, "leaves"], [BESIDE, "arrives"]] as const;
  test.skipIf(cannotRun).each(passes)("%j: %s", async (ask, verdict) => await expectPasses(judged, ask, verdict));

  test.skipIf(cannotRun).each(ownShare(setUps))("broken: $what: $code", async (one) => {
    try {
      await expectStopped(judged, one);
    } finally {
      await mendAll(judged, one.undo);
    }
  });
});
