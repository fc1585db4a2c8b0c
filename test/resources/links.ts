/** All stories of links, addresses, rules and limits, told on the host and in container c1. */
import type { Machine } from "../support/machine.ts";
import { type TableStory, tell } from "../support/table-story.ts";
import { addresses, lending, routing } from "./links/addresses.ts";
import { links } from "./links/links.ts";
import { traffic } from "./links/traffic.ts";

export const linkStories: readonly TableStory[] = [...links, addresses, routing, lending, traffic];

export async function tellOfLinks(machine: Machine, story: TableStory): Promise<string> {
  const { netnsPath } = await machine.container("c1");
  return await tell(machine, story, { CNI_NETNS: netnsPath });
}
