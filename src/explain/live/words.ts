/** What was seen of a real packet, for people. */
import { placeText } from "../../net/netfilter/text.ts";
import { TCP, UDP } from "../../net/ip-protocol.ts";
import type { LiveProof } from "./prove.ts";

const AGREEMENTS: Record<LiveProof["agrees"], string> = {
  yes: "agrees",
  decides: "decides",
  open: "does not decide",
  contradiction: "contradiction, a defect of this program; please report all of this",
};

/** Each is one line, or more when it is long. */
export function liveLines(live: LiveProof): string[] {
  const ways = (["going", "answer"] as const).flatMap((direction) => {
    const sights = Map.groupBy(
      live.sights.filter((sight) => sight.direction === direction),
      ({ netns }) => netns.label,
    );
    const hooks = [...sights].map(([label, seen]) =>
      `${label}: ${[...new Set(seen.map(({ hook }) => hook))].join(", ")}`
    );
    return hooks.length === 0 ? [] : [`${direction === "going" ? "seen in" : "answer in"} ${hooks.join("; ")}`];
  });
  const rules = live.sights.flatMap(({ by, verdict }) =>
    by !== undefined && (by.rule !== undefined || verdict !== "accept") ? [`${verdict}: ${placeText(by)}`] : []
  );
  return [sentText(live), ...ways, ...new Set(rules), `${AGREEMENTS[live.agrees]}: ${live.text}`, ...live.involved];
}

export function sentText({ way: { flow: { protocol }, watchMs }, mark, isRefused }: LiveProof): string {
  if (isRefused) return "nothing was sent";
  if (watchMs !== undefined && mark === undefined) return `no packet of it came in ${watchMs / 1000} s`;
  const kind = protocol === TCP ? "a connection" : protocol === UDP ? "an empty datagram" : "an echo";
  const number = `${protocol === TCP || protocol === UDP ? "from port" : "with the number"} ${mark}`;
  return watchMs === undefined ? `sent ${kind} ${number}` : `a packet came ${number}`;
}

/** The answer, where the packet has shown another one than the walk has. */
export function liveHeadline({ agrees, verdict, text }: LiveProof, told: string): string {
  if (agrees === "contradiction") return `contradiction: the walk says "${told}", but ${text}`;
  return agrees === "decides" ? `${verdict}, as was seen: ${text}` : told;
}
