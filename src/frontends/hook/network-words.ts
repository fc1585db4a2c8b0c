/** Parses what a container asks of one network, word by word: `ip=10.2.0.9 mac=02:00:00:00:00:09 ingress=100M`. Pure. */
import { canonicalAddress, canonicalPrefix } from "../../net/address.ts";
import { canonicalMac } from "../../net/mac.ts";
import { refusal, type Setting } from "./settings.ts";

export const wordNames = ["ip", "mac", "ingress", "egress"] as const;
export type WordName = (typeof wordNames)[number];

export interface Word {
  readonly name: WordName;
  readonly value: string;
  readonly setting: Setting;
  /** The part of the setting that is wrong when the value is. */
  readonly text: string;
}

/** Limits networks, and entries of each list: each takes time, and the container's author writes them. */
export const MOST_ENTRIES = 64;

/** Returns capability arguments. */
export function argsOfWords(words: readonly Word[]): Record<string, unknown> {
  const ips: string[] = [], bandwidth: Record<string, number> = {};
  let mac: string | undefined;
  for (const word of words) {
    const { name, value, setting } = word;
    switch (name) {
      case "ip":
        ips.push(
          canonicalPrefix(value) ?? canonicalAddress(value) ??
            wrong(word, "it is not an IP address, with or without a prefix length"),
        );
        if (ips.length > MOST_ENTRIES) {
          throw refusal(setting, setting.text, `there are more than ${MOST_ENTRIES} addresses`);
        }
        break;
      case "mac":
        mac = canonicalMac(value) ?? wrong(word, "it is no MAC address");
        break;
      case "ingress":
      case "egress":
        bandwidth[`${name}Rate`] = parseRate(word);
        bandwidth[`${name}Burst`] = burstFor(bandwidth[`${name}Rate`]!);
    }
  }
  return {
    ...ips.length > 0 && { ips },
    ...mac !== undefined && { mac },
    ...Object.keys(bandwidth).length > 0 && { bandwidth },
  };
}

function wrong({ setting, text }: Word, rule: string): never {
  throw refusal(setting, text, rule);
}

const UNITS: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9 };

function parseRate(word: Word): number {
  const [, digits, unit = ""] = /^([1-9][0-9]{0,11})([kMG]?)$/.exec(word.value) ?? [];
  if (digits === undefined) return wrong(word, "a rate is bits per second, as in 800k, 100M or 1G");
  return Number(digits) * UNITS[unit]!;
}

/** Returns bits: a tenth of a second, and at least the largest packet that the kernel hands over at once. */
function burstFor(rate: number): number {
  return Math.max(Math.floor(rate / 10), 64 * 1024 * 8);
}
