/** `patchbay-VERSION-linux-ARCHITECTURE.tar.gz`: everything for a host without packages. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import { PERMISSION, PERMISSION_TEXT } from "../src/process/resident-by-call.ts";
import type { ServiceRow } from "../src/services/service.ts";
import { services } from "../src/services/table.ts";
import { markedUnitFiles } from "../src/install/units.ts";
import {
  completionEntries,
  fileOfCheckout,
  kubernetesEntries,
  manEntries,
  type Places,
  schemaEntries,
} from "./contents.ts";
import type { Making } from "./edition.ts";
import type { File } from "./files.ts";
import { licenceEntries } from "./licences.ts";
import { tarOf } from "./tar.ts";

const places: Places = {
  man: (section) => `man/man${section}/`,
  bash: "completion/bash/",
  zsh: "completion/zsh/",
  fish: "completion/fish/",
};

/**
 * For root file systems that are made elsewhere: there the program cannot run. Their links count for the system that they are
 * of, and lead somewhere else on this one.
 */
const links = `#!/bin/sh
# Puts the program and a link for every plugin name into a CNI plugin directory, without running the program.
# On the host itself, \`./patchbay install DIR\` does more: it keeps what was there, and starts a resident.
set -eu
fail() {
  echo "links.sh: $1" >&2
  exit 1
}
usage() {
  echo "Usage: links.sh ROOT/opt/cni/bin, or links.sh ROOT DIR for another directory of that root" >&2
  exit 2
}
case \${1-} in
"") usage ;;
-*) first=./$1 ;;
*) first=$1 ;;
esac
case $# in
1) directory=$first ;;
2) directory=$first/$2 ;;
*) usage ;;
esac
directory=$(printf '%s\\n' "$directory" | sed 's:/\\{1,\\}:/:g; s:\\(.\\)/$:\\1:')
root=$first
if [ $# -eq 1 ]; then
  # The directories in which engines have plugins. For any other one, the caller has to name the root.
  root=$(dirname "$directory")
  for usual in opt/cni/bin usr/lib/cni usr/libexec/cni usr/local/lib/cni; do
    case $directory in
    "$usual") root=. ;;
    */"$usual") root=\${directory%"$usual"} ;;
    esac
  done
fi

# The root's links are followed on this machine, so they may lead out of the root. While the directory is not there, its
# nearest parent that is there counts.
require_below() {
  place=$directory
  while [ ! -e "$place" ] && [ ! -L "$place" ]; do place=$(dirname "$place"); done
  [ -e "$place" ] || fail "$place is a link that leads nowhere on this machine; make the directory in $root first"
  top=$(readlink -f "$root") real=$(readlink -f "$place")
  case $real/ in
  "\${top%/}"/*) ;;
  *) fail "$directory leads to $real, which is not below $root: a link in it is of that system, and is followed on this one" ;;
  esac
}

names="${pluginNames.join(" ")}"
mkdir -p "$root"
require_below
for name in patchbay $names; do
  if [ -d "$directory/$name" ] && [ ! -L "$directory/$name" ]; then
    fail "$directory/$name is a directory; move it away"
  fi
done
mkdir -p "$directory"
require_below
rm -f "$directory/.patchbay.new"
is_first=no
[ -e "$directory/patchbay" ] || is_first=yes
cp "$(dirname "$(readlink -f "$0")")/patchbay" "$directory/.patchbay.new"
chmod 755 "$directory/.patchbay.new"
# mv would put it into the directory that a link leads to.
[ ! -L "$directory/patchbay" ] || rm -f "$directory/patchbay"
mv -f "$directory/.patchbay.new" "$directory/patchbay"
for name in $names; do
  ln -sfn patchbay "$directory/$name"
done
# Where no systemd will start a resident, calls do. What was chosen later stays.
if [ $is_first = yes ] && [ ! -e "$root/lib/systemd/systemd" ] && [ ! -e "$root/usr/lib/systemd/systemd" ]; then
  rm -f "$directory/${PERMISSION}"
  echo "${PERMISSION_TEXT}" >"$directory/${PERMISSION}"
fi
`;

/** As `install` writes them, so that it knows them on a host to which they were copied. */
export function unitEntries(rows: readonly ServiceRow[] = services): File[] {
  return rows.flatMap((service) => markedUnitFiles(service, "/opt/cni/bin/patchbay"))
    .map(({ name, text }) => ({ path: `systemd/${name}`, text }));
}

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
    ...schemaEntries("schemas/"),
    ...kubernetesEntries("kubernetes/"),
    ...unitEntries(),
  ];
  const files = entries.map((entry) => ({ ...entry, path: `${name}/${entry.path}` }));
  const archive = join(out, `${name}.tar.gz`);
  writeFileSync(archive, Bun.gzipSync(tarOf(files, edition.epoch), { level: 9 }));
  return archive;
}
