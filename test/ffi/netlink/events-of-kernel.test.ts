/** A socket hears of changes of links, addresses and rules when it has asked for them, and other sockets do not. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";

const netlink = resolve(import.meta.dir, "../../../src/ffi/netlink");
const script = `
  import { readFileSync } from "node:fs";
  import { awaitChange, openEvents, openNetfilterEvents } from "${netlink}/events.ts";
  const LINK = 1, IPV4_IFADDR = 5;
  const sh = (command) => Bun.spawnSync(["sh", "-c", command]).exitCode;
  /** Whether there are notifications. */
  const told = (events, command) => {
    if (sh(command) !== 0) throw new Error(command);
    let count = 0;
    while (events.receive(0) !== undefined) count++;
    return count > 0;
  };
  const links = openEvents(LINK), both = openEvents(LINK, IPV4_IFADDR), rules = openNetfilterEvents();
  const address = "ip address add 10.1.2.3/32 dev lo", table = "nft add table ip t";
  const quiet = [links, both, rules].map((events) => events.receive(0) === undefined);
  const ofLinks = [told(links, "ip link add br1 type bridge"), told(links, address), told(links, table)];
  const ofBoth = [told(both, "true"), told(both, address.replace("3/", "4/"))];
  const ofRules = [told(rules, "true"), told(rules, "ip link add br2 type bridge"), told(rules, "nft add table ip u")];
  for (const events of [links, both, rules]) events.close();

  /** How many sockets of netlink there are in the namespace. */
  const sockets = () => readFileSync("/proc/self/net/netlink", "utf8").split("\\n").length;
  const before = sockets();
  let looks = 0;
  const isThere = () => ++looks > 1 || sh("ip link add br3 type bridge") !== 0;
  const inside = [];
  const came = awaitChange(LINK, 60_000, isThere, (work) => (inside.push("in"), work()));
  const never = awaitChange(LINK, 1, () => false);
  const left = sockets() - before;
  console.log(JSON.stringify({ quiet, ofLinks, ofBoth, ofRules, came, looks, inside, never, left }));
`;

test("those who asked are told, and a change ends the wait for it", async () => {
  await using machine = await openMachine();
  const { stdout, stderr } = await machine.run([process.execPath, "-e", script]);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({
    quiet: [true, true, true],
    ofLinks: [true, false, false],
    ofBoth: [true, true],
    ofRules: [true, false, true],
    came: true,
    looks: 2,
    inside: ["in"],
    never: false,
    left: 0,
  });
});
