/** Lease files as the servers of Debian 12 wrote them. */
import { expect, test } from "bun:test";
import { readDnsmasq, readIsc, readKea, readUdhcpd } from "./leases.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const now = 1_000_000, mac = "02:00:00:00:00:07";

test("dnsmasq", () => {
  const file = bytes(`1000120 ${mac} 192.168.77.100 web 00:63:31
1000000 02:00:00:00:00:08 192.168.77.101 * *
duid 00:01:00:01
1000120 7 fd00:77::100 * 00:02:AB
`);
  expect(readDnsmasq(file, now)).toEqual([
    { address: "192.168.77.100", mac, clientId: "006331", hostName: "web", state: "active", ends: 1_000_120 },
    { address: "192.168.77.101", mac: "02:00:00:00:00:08", state: "free", ends: now },
    { address: "fd00:77::100", clientId: "0002ab", state: "active", ends: 1_000_120 },
  ]);
});

test("udhcpd", () => {
  const entry = (seconds: number, octet: number, hardware: string, name: string) =>
    seconds.toString(16).padStart(8, "0") + `c0a84d${octet.toString(16)}` + hardware.replaceAll(":", "") +
    Buffer.from(name).toString("hex").padEnd(44, "0");
  const head = now.toString(16).padStart(16, "0"), none = "00:00:00:00:00:00";
  const file = head + entry(20, 100, mac, "web") + entry(0, 101, mac, "") + entry(9, 102, none, "");
  expect(readUdhcpd(Uint8Array.fromHex(file), now)).toEqual([
    { address: "192.168.77.100", mac, hostName: "web", state: "active", ends: now + 20 },
    { address: "192.168.77.101", mac, state: "free", ends: now },
    { address: "192.168.77.102", state: "declined", ends: now + 9 },
  ]);
  expect(readUdhcpd(Uint8Array.fromHex(file.slice(0, -2)), now)).toBeUndefined();
});

test("dhcpd: the last block of an address counts", () => {
  const block = (address: string, state: string, ends: string) =>
    `lease ${address} {
  starts epoch 999990; # Mon Jan 12 13:46:30 1970
  ends ${ends};
  cltt epoch 999990; # Mon Jan 12 13:46:30 1970
  binding state ${state};
  next binding state free;
  rewind binding state free;
  hardware ethernet ${mac};
  uid "\\000c\\"\\\\1";
  client-hostname "web";
}
`;
  const v6 = `ia-na "\\007\\000\\000\\000\\000\\001\\253;" {
  cltt epoch 999990; # Mon Jan 12 13:46:30 1970
  iaaddr fd00:77::100 {
    binding state active;
    preferred-life 20;
    max-life 30;
    ends epoch 1000020; # Mon Jan 12 13:47:00 1970
  }
}
`;
  const ends = "epoch 1000020; # Mon Jan 12 13:47:00 1970".replace(/;.*/, "");
  const file = block("192.168.77.100", "active", ends) + block("192.168.77.101", "abandoned", ends) +
    block("192.168.77.102", "active", "never") + block("192.168.77.100", "free", ends) + v6;
  const client = { mac, clientId: "0063225c31", hostName: "web" };
  expect(readIsc(bytes(file), now)).toEqual([
    { address: "192.168.77.100", ...client, state: "free", ends: now + 20 },
    { address: "192.168.77.101", ...client, state: "declined", ends: now + 20 },
    { address: "192.168.77.102", ...client, state: "active", ends: Infinity },
    { address: "fd00:77::100", clientId: "0001ab3b", state: "active", ends: now + 20 },
  ]);
});

test("Kea: the last line of an address counts", () => {
  const names =
    "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context";
  const file = `${names}
192.168.77.100,${mac},00:63:31,20,1000020,1,0,0,web,0,
192.168.77.101,${mac},,20,1000020,1,0,0,,1,
192.168.77.100,${mac},00:63:31,0,1000000,1,0,0,web,0,
`;
  expect(readKea(bytes(file), now)).toEqual([
    { address: "192.168.77.100", mac, clientId: "006331", hostName: "web", state: "free", ends: now },
    { address: "192.168.77.101", mac, state: "declined", ends: now + 20 },
  ]);
  expect(readKea(bytes(`${file}192.168.77.100,${mac}`), now)).toBeUndefined();
});
