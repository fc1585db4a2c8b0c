/** What is asked of a container when nobody says what: its way out, its names, each of its published ports. */
import { hasDefaultRoute, nameServersOf } from "../engine/operator/given-to-container.ts";
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { parseAddress, parsePrefix } from "../net/address.ts";
import { LOOPBACK_NET } from "./walk/routing.ts";
import { publishedPorts } from "./published-ports.ts";
import { type Party, protocolNumber, type Question } from "./question.ts";

const HTTPS = 443;

/** `outside`: the families in which somebody outside reaches the host. */
export function usualQuestions(attachment: KnownAttachment, label: string, outside: readonly (4 | 6)[]): Question[] {
  const own: Party = { is: "container", attachment, label };
  const families = ([4, 6] as const).filter((family) => hasFamily(attachment, family));
  const out = families.filter((family) => hasDefaultRoute(attachment, family)).map((family): Question => ({
    from: own,
    to: { is: "outside" },
    family,
    protocol: protocolNumber("tcp", family),
    port: HTTPS,
  }));
  return [...out, ...namesOf(attachment, own), ...portsOf(attachment, families, outside)];
}

function hasFamily(attachment: KnownAttachment, family: 4 | 6): boolean {
  return gistOf(attachment).addresses.some((text) => parsePrefix(text)?.bytes.length === (family === 4 ? 4 : 16));
}

function namesOf(attachment: KnownAttachment, from: Party): Question[] {
  return nameServersOf(attachment).flatMap(({ address, port }) => {
    const bytes = parseAddress(address), family = bytes?.length === 4 ? 4 : 6;
    if (bytes === undefined || !hasFamily(attachment, family)) return [];
    return [{ from, to: { is: "address", bytes }, family, protocol: protocolNumber("udp", family), port }];
  });
}

/** One that is published at all addresses is asked for in each family in which both can be reached, or in the first. */
function portsOf(attachment: KnownAttachment, own: readonly (4 | 6)[], outside: readonly (4 | 6)[]): Question[] {
  const both = own.filter((family) => outside.includes(family)), anywhere = both.length > 0 ? both : [own[0] ?? 4];
  return publishedPorts(attachment).flatMap(({ at, port, protocol: name }): Question[] => {
    const bytes = at === undefined ? undefined : parseAddress(at);
    const families = bytes === undefined ? anywhere : [bytes.length === 4 ? 4 as const : 6 as const];
    return families.map((family) => {
      // From outside nobody reaches an address of the host alone.
      const from: Party = { is: bytes?.[0] === LOOPBACK_NET && family === 4 ? "host" : "outside" };
      const to: Party = bytes === undefined ? { is: "host" } : { is: "address", bytes };
      return { from, to, family, protocol: protocolNumber(name, family), port };
    });
  });
}
