/** The reference plugins' chains of iptables that belong to one container in one network, and their rules' comments. */

export interface Named {
  network: string;
  containerId: string;
}

const NAME_CHARACTERS = 28;

export function containerChain(start: string, { network, containerId }: Named): string {
  const hash = new Bun.CryptoHasher("sha512").update(network + containerId).digest("hex");
  return start + hash.slice(0, NAME_CHARACTERS - start.length);
}

/** Go's %q of both; CNI allows nothing in them that it would escape. */
export function containerComment({ network, containerId }: Named): string {
  return `name: "${network}" id: "${containerId}"`;
}

/** Whose the chain is, by the comment of a rule in it or of one that leads there. Undefined for any other chain. */
export function namedIn(start: string, comment: string | undefined, chain: string | undefined): Named | undefined {
  const parts = /^(?:dnat )?name: "([^"]*)" id: "([^"]*)"$/.exec(comment ?? "");
  if (parts === null) return undefined;
  const named = { network: parts[1]!, containerId: parts[2]! };
  return containerChain(start, named) === chain ? named : undefined;
}
