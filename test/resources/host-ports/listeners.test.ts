/** Which of the host's listening sockets lose their packets to a port of a container. */
import { expect, test } from "bun:test";
import { parseAddress } from "../../../src/net/address.ts";
import { wouldTakeFrom } from "../../../src/resources/host-ports/listeners.ts";

const claims = {
  all4: [4],
  all6: [6],
  "192.0.2.1": [4, "192.0.2.1"],
  "127.0.0.53": [4, "127.0.0.53"],
  "fd00::1": [6, "fd00::1"],
  "::1": [6, "::1"],
} as const;

const cases: [address: string, isV6Only: boolean, taken: (keyof typeof claims)[]][] = [
  ["0.0.0.0", false, ["all4", "192.0.2.1", "127.0.0.53"]],
  ["::", false, ["all4", "all6", "192.0.2.1", "127.0.0.53", "fd00::1"]],
  ["::", true, ["all6", "fd00::1"]],
  ["192.0.2.1", false, ["all4", "192.0.2.1"]],
  ["192.0.2.2", false, ["all4"]],
  ["127.0.0.1", false, ["all4"]],
  ["127.0.0.53", false, ["127.0.0.53"]],
  ["fd00::1", false, ["all6", "fd00::1"]],
  ["::1", false, []],
];

for (const [text, isV6Only, taken] of cases) {
  test(`${text}${isV6Only ? ", IPv6 alone" : ""}`, () => {
    const listener = { address: parseAddress(text)!, port: 53, isV6Only, link: 0 };
    const found = Object.entries(claims).filter(([, [family, at]]) =>
      wouldTakeFrom(
        { family, protocol: "udp", port: 53, at: at === undefined ? undefined : parseAddress(at) },
        listener,
      )
    );
    expect(found.map(([name]) => name)).toEqual(taken);
    expect(wouldTakeFrom({ family: 4, protocol: "udp", port: 54 }, listener)).toBe(false);
  });
}
