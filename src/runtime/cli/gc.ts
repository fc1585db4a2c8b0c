/** `patchbay gc NETWORK`. */
import { collectGarbage } from "../chain.ts";
import { type Command, UsageError } from "./command.ts";
import { networkOf, runtimeOf, runtimeOptions } from "./network-call.ts";
import { complain } from "./print.ts";

export const gcCommand: Command = {
  summary: "undo every attachment to a network that is not named as valid",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  options: {
    valid: { value: "ID/IFNAME", help: "an attachment to keep; repeat it for each (none: all go, as with cnitool)" },
    ...runtimeOptions,
  },
  notes: "The result cache knows attachments of other engines too, when they share a network's name.\n",
  run(given) {
    const valid = given.values("valid").map((text) => {
      const [containerId, ifName, ...more] = text.split("/");
      if (!containerId || !ifName || more.length > 0) throw new UsageError(`--valid ${text} is not ID/IFNAME`);
      return { containerId, ifName };
    });
    collectGarbage(runtimeOf(given), networkOf(given), valid, ({ network, containerId, ifName }) => {
      complain(`deleting ${ifName} of container ${containerId} from network ${network}`);
    });
    return 0;
  },
};
