/** Files that set sysctls when the host starts, and switch off forwarding, which Patchbay has switched on. */
import { undefinedOnError } from "../cni/error.ts";
import { listDirectory, readConfiguredFile } from "../ffi/files.ts";

/** sysctl.d(5): a file hides one of its name in a later directory, and they are read in the order of their names. */
const DIRECTORIES = [
  "/etc/sysctl.d",
  "/run/sysctl.d",
  "/usr/local/lib/sysctl.d",
  "/usr/lib/sysctl.d",
  "/lib/sysctl.d",
];
const OWN_FILE = "/etc/sysctl.conf";

/** What says that forwarding is off after the start; undefined where nothing does. */
export function forwardingReset(): string | undefined {
  const files = new Map<string, string>();
  for (const directory of DIRECTORIES) {
    for (const name of undefinedOnError(() => listDirectory(directory)) ?? []) {
      if (name.endsWith(".conf") && !files.has(name)) files.set(name, `${directory}/${name}`);
    }
  }
  const paths = [...files].sort(([one], [other]) => one < other ? -1 : 1).map(([, path]) => path);
  const settings = paths.flatMap(settingsIn), last = lastOf(settings);
  if (last?.value === "0") return `${last.path} sets ${last.key} to 0`;
  // systemd reads it only by a link in a directory.
  const own = lastOf([...settings, ...settingsIn(OWN_FILE)]);
  return own?.value === "0" ? `${own.path} sets ${own.key} to 0 where "sysctl --system" reads it` : undefined;
}

interface Setting {
  path: string;
  key: string;
  value: string;
}

const KEY = String.raw`net[./]ipv4[./](?:ip_forward|conf[./](?:all|\*)[./]forwarding)`;
const FORWARDING = new RegExp(String.raw`^[ \t]*-?(${KEY})[ \t]*=[ \t]*([01])[ \t]*$`, "gm");

function settingsIn(path: string): Setting[] {
  const text = undefinedOnError(() => readConfiguredFile(path)) ?? "";
  return [...text.matchAll(FORWARDING)].map(([, key, value]) => ({
    path,
    key: key!.replaceAll("/", "."),
    value: value!,
  }));
}

/** A pattern does not count for what has a setting of its own, wherever that is. */
function lastOf(settings: readonly Setting[]): Setting | undefined {
  const isNamed = settings.some(({ key }) => key.endsWith(".all.forwarding"));
  return settings.findLast(({ key }) => !(isNamed && key.includes("*")));
}
