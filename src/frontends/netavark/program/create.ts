/** `netavark create`: reads what podman asks for, and looks at the host's links and at other drivers. */
import { object } from "../../../cni/decode.ts";
import { parseDocument } from "../../../cni/json.ts";
import { NETLINK_ROUTE, withNetlink } from "../../../ffi/netlink/socket.ts";
import { listLinks } from "../../../ffi/netlink/route/link.ts";
import { randomBytes } from "../../../ffi/random.ts";
import { finishNetwork } from "../create/network.ts";
import { findForeignDriver, readDriverAnswer, runForeignDriver } from "../run-foreign-driver.ts";
import { within } from "../../../resources/netavark/shared/failure.ts";
import type { Creation, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { decodeCreation, decodeNetwork } from "../../../interop/podman-documents/netavark.validate.gen.ts";
import { checkedInteger, checkedNetwork, checkedPrefix, inOrder } from "../../../interop/podman-documents/network.ts";
import type { NetavarkCall } from "./call.ts";

const LONGEST_PREFIX = 128;

export function create({ options, readInput }: NetavarkCall): PodmanNetwork {
  const creation = within("failed to load network create", () => readCreation(readInput()));
  return finishNetwork(creation, {
    linkNames,
    random: randomBytes,
    now: () => new Date(),
    askForeignDriver: (network) => askForeignDriver(options.pluginDirectories, network),
  });
}

function readCreation(input: Uint8Array): Creation {
  const { network, used, options } = decodeCreation(object(parseDocument(input, "stdin"), ""));
  return {
    network: checkedNetwork(network, "network"),
    used: { ...used, subnets: used.subnets.map((subnet, index) => checkedPrefix(subnet, `used.subnets[${index}]`)) },
    options: {
      ...options,
      subnet_pools: options.subnet_pools.map(({ base, size }, index) => ({
        base: checkedPrefix(base, `options.subnet_pools[${index}].base`),
        size: checkedInteger(size, LONGEST_PREFIX, `options.subnet_pools[${index}].size`),
      })),
    },
  };
}

function linkNames(): string[] {
  return withNetlink(NETLINK_ROUTE, listLinks).map(({ name }) => name);
}

/** The driver may change everything but what podman knows the network by. */
function askForeignDriver(directories: readonly string[], network: PodmanNetwork): PodmanNetwork {
  const { driver } = network, path = findForeignDriver(directories, driver);
  if (path === undefined) {
    throw new Error(
      `plugin for driver ${JSON.stringify(driver)} not found in plugin directories: ${directories.join(", ")}`,
    );
  }
  const stdout = runForeignDriver(path, ["create"], inOrder(network));
  const changed = readDriverAnswer(stdout, (document) => checkedNetwork(decodeNetwork(document), "network"));
  for (const [key, what] of [["name", "name"], ["id", "ID"], ["driver", "driver"]] as const) {
    if (changed[key] !== network[key]) throw new Error(`${driver} plugin invalid result: changed network ${what}`);
  }
  return changed;
}
