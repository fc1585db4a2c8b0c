/**
 * The host's end of a container's link is up. It is made down, and this comes after all that confines it: a container that
 * runs already may send as soon as both ends are up. DEL does nothing: the end goes with its pair.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { getLink, setLink } from "../../ffi/netlink/route/link.ts";

interface HostEndUpSpec {
  /** "" when it is not known: another program made the attachment, and there is no prevResult. */
  ifName: string;
}

export const hostEndUpKind: ResourceKind<HostEndUpSpec> = {
  kind: "host-end-up",
  opensLink: true,
  apply: ({ ifName }, { route }) => setLink(route, { index: 0, name: ifName }, { ifName, up: true }),
  remove: () => {},
  verify({ ifName }, { route }) {
    const link = ifName === "" ? undefined : getLink(route, ifName);
    return link === undefined || link.up ? [] : [`link ${ifName} is down`];
  },
  repair({ ifName }, { route }) {
    const link = getLink(route, ifName);
    if (link !== undefined) setLink(route, link, { up: true });
  },
  describe: ({ ifName }) => `${ifName} is up`,
};

export const hostEndUp = resource(hostEndUpKind);
