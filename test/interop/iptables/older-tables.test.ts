/** iptables rules as the line that iptables-save prints for the older tables. */
import { expect, test } from "bun:test";
import { ruleText } from "../../../src/interop/iptables/text-rule.ts";
import { openMachine } from "../../support/machine.ts";
import { CHAIN, DNAT, placeOf, rules } from "./rules.ts";

test("as text: the line that the older tables' iptables-save prints, and iptables-restore reads", async () => {
  await using machine = await openMachine();
  const places = Object.keys(rules).map((name) => ({ name, ...placeOf(name) }));
  for (const family of [4, 6] as const) {
    const tool = family === 4 ? "iptables-legacy" : "ip6tables-legacy";
    const ours = places.filter((place) => place.family === family);
    for (const table of ["nat", "filter"]) {
      const lines = ours.filter((place) => place.table === table)
        .map(({ name, chain }) => `-A ${chain} ${ruleText(rules[name]!)}`);
      const commands = ours.filter((place) => place.table === table)
        .map(({ command }) => command.replace(/^ip6?tables/, tool));
      const chains = [CHAIN, DNAT, "CNI-FORWARD"];
      await machine.sh([...chains.map((chain) => `${tool} -t ${table} -N ${chain}`), ...commands].join("\n"));
      const saved = async () =>
        (await machine.sh(`${tool}-save -t ${table}`)).split("\n").filter((l) => /^-A/.test(l));
      const theirs = await saved();
      expect(lines.toSorted()).toEqual(theirs.toSorted());
      await machine.sh(`${tool} -t ${table} -F`);
      const input = [`*${table}`, ...theirs, "COMMIT", ""].join("\n");
      await machine.sh(`${tool}-restore --noflush`, { stdin: input });
      expect(await saved()).toEqual(theirs);
    }
  }
});
