/** `patchbay-VERSION-linux-ARCHITECTURE.tar.gz`: everything for a host without packages. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import { dhcpUnits } from "../src/runtime/cli/dhcp-units.ts";
import { residentUnits } from "../src/runtime/cli/resident-units.ts";
import { markedUnitFiles } from "../src/runtime/cli/units.ts";
import { completionEntries, fileOfCheckout, manEntries, type Places } from "./contents.ts";
import type { Making } from "./edition.ts";
import { bytesOf, type File, modeOf } from "./files.ts";
import { licenceEntries } from "./licences.ts";
import { tarOf, withDirectories } from "./tar.ts";

const places: Places = {
  man: (section) => `man/man${section}/`,
  bash: "completion/bash/",
  zsh: "completion/zsh/",
  fish: "completion/fish/",
};

/** For root file systems that are made elsewhere: there the program cannot run. */
const links = `#!/bin/sh
# Puts the program and a link for every plugin name into a CNI plugin directory, without running the program.
# On the host itself, \`./patchbay install DIR\` does more: it keeps what was there, and starts a resident.
set -eu
if [ $# -ne 1 ]; then
  echo "Usage: links.sh DIR" >&2
  exit 2
fi
case $1 in
-*) set -- "./$1" ;;
esac
names="${pluginNames.join(" ")}"
for name in patchbay $names; do
  if [ -d "$1/$name" ] && [ ! -L "$1/$name" ]; then
    echo "links.sh: $1/$name is a directory; move it away" >&2
    exit 1
  fi
done
mkdir -p "$1"
rm -f "$1/.patchbay.new"
cp "$(dirname "$(readlink -f "$0")")/patchbay" "$1/.patchbay.new"
chmod 755 "$1/.patchbay.new"
mv -f "$1/.patchbay.new" "$1/patchbay"
for name in $names; do
  ln -sfn patchbay "$1/$name"
done
`;

/** Returns the path of the archive. */
export function makeArchive(program: string, label: string, { edition, out }: Making): string {
  const name = `patchbay-${edition.version}-linux-${label}`;
  const entries: File[] = [
    { path: "patchbay", copyOf: program, isExecutable: true },
    { path: "links.sh", text: links, isExecutable: true },
    { path: "LICENSE", text: fileOfCheckout("LICENSE") },
    { path: "CHANGELOG.md", text: fileOfCheckout("CHANGELOG.md") },
    ...licenceEntries("licences/"),
    ...manEntries(edition, places),
    ...completionEntries(places),
    // As `install` writes them, so that it knows them on a host to which they were copied.
    ...[residentUnits, dhcpUnits].flatMap((units) => markedUnitFiles(units, "/opt/cni/bin/patchbay"))
      .map(({ name, text }) => ({ path: `systemd/${name}`, text })),
  ];
  const files = entries.map((entry) => ({
    path: `${name}/${entry.path}`,
    mode: modeOf(entry),
    bytes: bytesOf(entry),
  }));
  const archive = join(out, `${name}.tar.gz`);
  writeFileSync(
    archive,
    Bun.gzipSync(tarOf(withDirectories(files), edition.epoch) as Uint8Array<ArrayBuffer>, { level: 9 }),
  );
  return archive;
}
