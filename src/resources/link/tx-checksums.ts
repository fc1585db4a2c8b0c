/**
 * The container's link computes the checksums of what it sends. A veth leaves them to a device that packets never meet when
 * a process takes them from the link's other end: then TCP fails. The setting belongs to the link, so DEL does nothing.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { offloadsTxChecksums, setTxChecksumOffload } from "../../ffi/ethtool.ts";

export const txChecksumsKind: ResourceKind<{ ifName: string }> = {
  kind: "tx-checksums",
  apply: ({ ifName }, host) => host.container!.inside(() => setTxChecksumOffload(ifName, false)),
  repair: (spec, host) => txChecksumsKind.apply(spec, host),
  remove: () => {},
  verify: ({ ifName }, host) =>
    // The link's own kind says that it is gone.
    linkIndex(host.container!.route, ifName) === undefined
      ? []
      : host.container!.inside(() =>
        offloadsTxChecksums(ifName)
          ? [`link ${ifName} in the container does not compute the checksums that it sends`]
          : []
      ),
  describe: ({ ifName }) => `${ifName} computes the checksums that it sends`,
};

export const txChecksums = resource(txChecksumsKind);
