/** Work on a host for which no verb runs. */
import { type OpenHost, openHost, type OpenOptions } from "./open-host.ts";

/** Runs `work` on this host, and on the container in `netnsPath` where that is given; closes what it opens. */
export function onHost<T>(work: (host: OpenHost) => T, netnsPath = "", options: OpenOptions = {}): T {
  const host = openHost(netnsPath, options);
  try {
    return work(host);
  } finally {
    host.close();
  }
}
