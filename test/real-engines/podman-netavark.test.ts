/** Debian 12's podman 4.3 with Patchbay in the place of netavark, whose test suite calls it without podman. */
import { tellOfContainers } from "../support/engines/netavark-containers.ts";
import { tellOfKills } from "../support/engines/netavark-kills.ts";
import { debian12 } from "../support/engines/netavark-story.ts";

tellOfContainers(debian12);
tellOfKills(debian12);
