/** Debian 12's podman 4.3 with Patchbay in the place of netavark: kinds of networks. */
import { tellOfNetworks } from "../support/engines/netavark-networks.ts";
import { debian12 } from "../support/engines/netavark-story.ts";

tellOfNetworks(debian12);
