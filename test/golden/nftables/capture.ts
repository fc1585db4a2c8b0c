/**
 * Writes the golden files beside it: what nft(8) and iptables-nft send to the kernel, four bytes a row, as strace(1) shows
 * it. Run by hand for a new version of either: `unshare -n npx bun test/golden/nftables/capture.ts`.
 */
const CHAIN = "CNI-e4c76feec97a77ba32cd962b";
const DNAT = "CNI-HOSTPORT-DNAT";
const COMMENT = `-m comment --comment 'name: "mynet" id: "ctr-0001"'`;
const MASQUERADE = "inet patchbay_masquerade";
const PORTMAP = "inet patchbay_portmap";
const MACSPOOFCHK = "bridge patchbay_macspoofchk";

/** By the file's name, in the order they have to run in; those without one only make what the next needs. */
const commands: [name: string, command: string][] = [
  ["iptables-chain", `iptables -t nat -N ${CHAIN}`],
  ["iptables-accept", `iptables -t nat -A ${CHAIN} -d 10.88.0.5/16 -j ACCEPT ${COMMENT}`],
  ["iptables-accept-21", `iptables -t nat -A ${CHAIN} -d 10.88.13.5/21 -j ACCEPT ${COMMENT}`],
  ["iptables-accept-0", `iptables -t nat -A ${CHAIN} -d 10.88.13.5/0 -j ACCEPT ${COMMENT}`],
  ["iptables-masquerade", `iptables -t nat -A ${CHAIN} ! -d 224.0.0.0/4 -j MASQUERADE ${COMMENT}`],
  ["iptables-jump", `iptables -t nat -A POSTROUTING -s 10.88.0.5 -j ${CHAIN} ${COMMENT}`],
  ["", `ip6tables -t nat -N ${CHAIN}`],
  ["ip6tables-accept", `ip6tables -t nat -A ${CHAIN} -d fd00:10:88::5/64 -j ACCEPT ${COMMENT}`],
  ["ip6tables-masquerade", `ip6tables -t nat -A ${CHAIN} ! -d ff00::/8 -j MASQUERADE ${COMMENT}`],
  ["ip6tables-jump", `ip6tables -t nat -A POSTROUTING -s fd00:10:88::5 -j ${CHAIN} ${COMMENT}`],
  ["", `iptables -t nat -N ${DNAT}`],
  ["", `ip6tables -t nat -N ${DNAT}`],
  ["", "iptables -t filter -N CNI-FORWARD"],
  ["", "ip6tables -t filter -N CNI-FORWARD"],
  [
    "iptables-state",
    "iptables -t filter -A CNI-FORWARD -d 10.88.0.5/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
  ],
  [
    "ip6tables-state",
    "ip6tables -t filter -A CNI-FORWARD -d fd00::5/128 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
  ],
  ["iptables-source-12", "iptables -t filter -A CNI-FORWARD ! -s 172.16.0.0/12 -j RETURN"],
  ["iptables-links", `iptables -t filter -A CNI-FORWARD -i br0 ! -o br0 -j DROP -m comment --comment hello`],
  ["iptables-links-plus", `iptables -t filter -A CNI-FORWARD ! -i cni+ -o eth0 -j DROP`],
  ["ip6tables-links", "ip6tables -t filter -A CNI-FORWARD -s fd00::/61 -i br0 ! -o br0 -j DROP"],
  ["iptables-local", `iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j ${DNAT}`],
  [
    "iptables-ports",
    `iptables -t nat -A OUTPUT ${COMMENT} -m multiport -p tcp --destination-ports 80,443,8080 -j ${DNAT}`,
  ],
  [
    "ip6tables-ports",
    `ip6tables -t nat -A OUTPUT ${COMMENT} -m multiport -p udp --destination-ports 53 -j ${DNAT}`,
  ],
  [
    "iptables-dnat",
    `iptables -t nat -A ${DNAT} -p tcp --dport 8080 -d 192.0.2.1 -j DNAT --to-destination 10.88.0.5:80`,
  ],
  [
    "ip6tables-dnat",
    `ip6tables -t nat -A ${DNAT} -p udp --dport 53 -j DNAT --to-destination [fd00:10:88::5]:5353`,
  ],
  [
    "iptables-dnat-sctp",
    `iptables -t nat -A ${DNAT} -p sctp --dport 9 -s 127.0.0.1 -j DNAT --to-destination 10.88.0.5:9`,
  ],
  ["iptables-set-mark", `iptables -t nat -A ${DNAT} ${COMMENT} -j MARK --set-xmark 0x2000/0x2000`],
  ["ip6tables-mark", `ip6tables -t nat -A ${CHAIN} -m mark --mark 0x2000/0x2000 -j MASQUERADE`],
  ["iptables-mark-whole", `iptables -t nat -A ${DNAT} -m mark --mark 0x1 -j RETURN`],
  ["nft-table", `nft 'add table ${MASQUERADE} { comment "hello"; }'`],
  [
    "nft-base-chain",
    `nft 'add chain ${MASQUERADE} postrouting { type nat hook postrouting priority 100; policy accept; }'`,
  ],
  ["nft-counter", `nft create counter ${MASQUERADE} from_10.88.0.0/16`],
  ["nft-map", `nft 'create map ${MASQUERADE} from_10.88.0.0/16 { type ipv4_addr : counter; }'`],
  [
    "nft-element",
    `nft 'create element ${MASQUERADE} from_10.88.0.0/16 { 10.88.0.5 comment "id: c, if: eth0" : "from_10.88.0.0/16" }'`,
  ],
  [
    "nft-masquerade",
    `nft add rule ${MASQUERADE} postrouting ip daddr != 10.88.0.0/16 ip daddr != 224.0.0.0/4 ` +
    `counter name ip saddr map @from_10.88.0.0/16 masquerade`,
  ],
  ["nft-delete-element", `nft 'delete element ${MASQUERADE} from_10.88.0.0/16 { 10.88.0.5 }'`],
  ["", `nft delete table ${MASQUERADE}`],
  ["", `nft add table ${PORTMAP}`],
  ["", `nft add chain ${PORTMAP} mapped`],
  ["", `nft add chain ${PORTMAP} entrance`],
  ["", `nft 'add chain ${PORTMAP} postrouting { type nat hook postrouting priority 100; }'`],
  [
    "nft-port-map",
    `nft 'create map ${PORTMAP} ports_ipv4 { type inet_proto . inet_service : ipv4_addr . inet_service; }'`,
  ],
  [
    "nft-port-map-6",
    `nft 'create map ${PORTMAP} ports_at_ipv6 { type ipv6_addr . inet_proto . inet_service : ipv6_addr . inet_service; }'`,
  ],
  [
    "nft-range-map",
    `nft 'create map ${PORTMAP} ranges_at_ipv4 { type ipv4_addr . inet_proto . inet_service : ipv4_addr; flags interval; }'`,
  ],
  ["nft-owner-map", `nft 'create map ${PORTMAP} owners_ipv4 { type mark . mark : counter; }'`],
  ["nft-port", `nft 'create element ${PORTMAP} ports_ipv4 { tcp . 8080 comment "id: c" : 10.88.0.5 . 80 }'`],
  [
    "nft-range",
    `nft 'create element ${PORTMAP} ranges_at_ipv4 { 192.0.2.1 . udp . 9000-9099 comment "id: c" : 10.88.0.5 }'`,
  ],
  ["nft-delete-range", `nft 'delete element ${PORTMAP} ranges_at_ipv4 { 192.0.2.1 . udp . 9000-9099 }'`],
  [
    "nft-port-rule",
    `nft add rule ${PORTMAP} mapped meta nfproto ipv4 dnat ip to meta l4proto . th dport map @ports_ipv4`,
  ],
  [
    "nft-port-rule-6",
    `nft add rule ${PORTMAP} mapped dnat ip6 to ip6 daddr . meta l4proto . th dport map @ports_at_ipv6`,
  ],
  ["nft-local", `nft add rule ${PORTMAP} entrance fib daddr type local jump mapped`],
  ["nft-mapped", `nft add rule ${PORTMAP} postrouting ct status dnat ip saddr 10.88.0.0/16 masquerade`],
  ["", `nft delete table ${PORTMAP}`],
  ["", `nft add table ${MACSPOOFCHK}`],
  [
    "nft-bridge-chain",
    `nft 'add chain ${MACSPOOFCHK} prerouting { type filter hook prerouting priority -300; policy accept; }'`,
  ],
  ["nft-bridge-set", `nft 'create set ${MACSPOOFCHK} allowed { type ifname . ether_addr; }'`],
  [
    "nft-bridge-element",
    `nft 'create element ${MACSPOOFCHK} allowed { "veth1234" . 02:00:00:00:00:05 comment "id: c, if: eth0" }'`,
  ],
  ["nft-bridge-rule", `nft add rule ${MACSPOOFCHK} prerouting iifname . ether saddr @allowed accept`],
];

const messageNames: Record<number, string> = {
  0: "NEWTABLE",
  2: "DELTABLE",
  3: "NEWCHAIN",
  6: "NEWRULE",
  9: "NEWSET",
  12: "NEWSETELEM",
  14: "DELSETELEM",
  18: "NEWOBJ",
};

function output(command: string): string {
  const { stdout, stderr, success } = Bun.spawnSync(["sh", "-c", command]);
  if (!success) throw new Error(`${command}: ${stderr}`);
  return stdout.toString() + stderr.toString();
}

/** The batch the command sent, out of strace's dump of what was written. */
function batchOf(command: string): Uint8Array {
  const traced = `strace -e trace=sendmsg -e write=3 ${command}`;
  const rows = output(traced).split("\n").map((line) => /^ \| [0-9a-f]{5} {2}([0-9a-f ]{49})/.exec(line)?.[1] ?? "");
  return Uint8Array.fromHex(rows.join("").replaceAll(" ", ""));
}

/** The last message between the begin and the end: what is before it makes the chain that the rule is for. */
function lastMessage(batch: Uint8Array): Uint8Array {
  const view = new DataView(batch.buffer);
  const messages: Uint8Array[] = [];
  for (let at = 0; at < batch.length; at += (view.getUint32(at, true) + 3) & ~3) {
    messages.push(batch.slice(at, at + view.getUint32(at, true)));
  }
  return messages[messages.length - 2]!;
}

function rows(message: Uint8Array): string[] {
  const view = new DataView(message.buffer);
  view.setUint32(8, 0, true); // sequence
  const notes = new Map<number, string>([
    [0, `length ${message.length}`],
    [4, `${messageNames[message[4]!]}, flags 0x${view.getUint16(6, true).toString(16)}`],
    [8, "sequence"],
    [12, "port"],
    [16, `family ${message[16]}, version, resource`],
  ]);
  const annotate = (from: number, to: number, indent: string) => {
    for (let at = from; at + 4 <= to; at += (view.getUint16(at, true) + 3) & ~3) {
      const length = view.getUint16(at, true), type = view.getUint16(at + 2, true);
      const nested = (type & 0x8000) !== 0;
      const text = new TextDecoder().decode(message.subarray(at + 4, at + length)).replace(/\0+$/, "");
      const said = !nested && text.length > 1 && /^[ -~]+$/.test(text) ? `: ${text}` : "";
      notes.set(at, `${indent}${type & 0x3fff}${nested ? " {}" : ""}${said}`);
      if (nested) annotate(at + 4, at + length, indent + "  ");
    }
  };
  annotate(20, message.length, "");
  const lines: { bytes: string; note: string; count: number }[] = [];
  for (let at = 0; at < message.length; at += 4) {
    const bytes = [...message.subarray(at, at + 4)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const note = notes.get(at) ?? "", last = lines[lines.length - 1];
    if (note === "" && last?.note === "" && last.bytes === bytes) last.count++;
    else lines.push({ bytes, note, count: 1 });
  }
  return lines.map(({ bytes, note, count }) => `${bytes}  ${count > 1 ? `*${count}` : note}`.trimEnd());
}

const versions = `${output("nft --version").trim()}, ${output("iptables --version").trim()}, Linux ${
  output("uname -r").split(".", 2).join(".")
}`;
for (const [name, command] of commands) {
  const message = lastMessage(batchOf(command));
  if (name === "") continue;
  const text = [`# ${command}`, `# ${versions}`, ...rows(message), ""].join("\n");
  await Bun.write(`${import.meta.dir}/${name}.txt`, text);
}
