/** What ports people read, and which ports of the host a container claims. The rules are in test/frontends/netavark/published-ports.test.ts. */
import { expect, test } from "bun:test";
import { firewalldPortsKind } from "../../../src/resources/netavark/firewalld-ports.ts";
import { type PublishedPort, publishedPortsKind } from "../../../src/resources/netavark/published-ports.ts";

const v4 = { address: "10.8.0.9", subnet: "10.8.0.0/24" }, v6 = { address: "fd08::9", subnet: "fd08::/64" };
const port: PublishedPort = { protocol: "tcp", hostPort: 8080, containerPort: 80, range: 1 };
const spec = (ports: PublishedPort[], targets = [v4, v6]) => ({
  network: "orchard",
  containerId: "c1",
  ifName: "eth0",
  networkId: "5ca1ab1e",
  targets,
  ports,
});

test("ports as people read them", () => {
  const ports: PublishedPort[] = [port, { ...port, protocol: "udp", range: 3, hostIp: "192.0.2.1" }];
  const texts = ["8080->80/tcp", "192.0.2.1:8080-8082->80-82/udp"];
  for (const kind of [publishedPortsKind, firewalldPortsKind]) {
    expect(kind.gist!(spec(ports))).toEqual({ ports: texts });
  }
  expect(publishedPortsKind.describe(spec(ports))).toBe(`ports ${texts.join(", ")} for 10.8.0.9`);
  expect(publishedPortsKind.describe(spec([port], []))).toBe("ports 8080->80/tcp for nothing");
  expect(firewalldPortsKind.describe(spec([port], [v6]))).toBe("ports 8080->80/tcp for fd08::9 in firewalld");
});

const claims: [port: Partial<PublishedPort>, claims: string[]][] = [
  [{}, ["4 tcp 8080", "6 tcp 8080"]],
  [
    { range: 3, protocol: "udp" },
    ["4", "6"].flatMap((family) => [0, 1, 2].map((at) => `${family} udp ${8080 + at}`)),
  ],
  [{ hostIp: "0.0.0.0" }, ["4 tcp 8080"]],
  [{ hostIp: "::" }, ["6 tcp 8080"]],
  [{ hostIp: "192.0.2.1" }, ["4 tcp 8080 at 192,0,2,1"]],
  [{ hostIp: "::1" }, [`6 tcp 8080 at ${"0,".repeat(15)}1`]],
];

test.each(claims)("the port %j claims %j", (more, wanted) => {
  const claimed = publishedPortsKind.claimedPorts!(spec([{ ...port, ...more }]));
  expect(claimed).toMatchObject({ network: "orchard", containerId: "c1", way: "netavark" });
  const texts = claimed.claims.map(({ family, protocol, port, at }) =>
    `${family} ${protocol} ${port}${at === undefined ? "" : ` at ${at}`}`
  );
  expect(texts).toEqual(wanted);
});
