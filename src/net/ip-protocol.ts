/** Numbers of IP's protocols (IANA, "Assigned Internet Protocol Numbers"), and of echoes in ICMP and ICMPv6. */
export const ICMP = 1, TCP = 6, UDP = 17, ICMPV6 = 58, SCTP = 132;

/** The types of messages: who asks, who answers. */
export const ECHOES: Readonly<Record<number, readonly [asks: number, answers: number]>> = {
  [ICMP]: [8, 0],
  [ICMPV6]: [128, 129],
};

/** The name of a protocol whose ports people ask for. */
export function nameWithPorts(protocol: number): "tcp" | "udp" | undefined {
  return protocol === TCP ? "tcp" : protocol === UDP ? "udp" : undefined;
}
