/**
 * What Debian's and RPM's packages have in common: `patchbay` has the only copy of the program; two others have links to it, in
 * the places where engines look for plugins.
 */
import { basename, dirname, relative } from "node:path";
import { REFERENCE_RELEASE } from "../src/cni/about.ts";
import { pluginNames } from "../src/plugins/table.ts";
import { REFUSED } from "../src/frontends/cli/commands/install.ts";
import { dhcpService } from "../src/services/dhcp/as-service.ts";
import { NETAVARK, PROGRAM_NAMES } from "../src/install/program-links.ts";
import { type ServiceRow, unitNames, type Units } from "../src/services/service.ts";
import { services } from "../src/services/table.ts";
import { PERMISSION, PERMISSION_TEXT } from "../src/process/resident-by-call.ts";
import { unitFiles } from "../src/install/units.ts";
import {
  completionEntries,
  fileOfCheckout,
  KUBERNETES_PLACE,
  kubernetesEntries,
  manEntries,
  type Places,
  schemaEntries,
} from "./contents.ts";
import type { Edition } from "./edition.ts";
import { compressed, type Entry, type Link } from "./files.ts";

export const PROGRAM = "usr/lib/patchbay/patchbay";

export interface PackagePlaces extends Places {
  /** The directory of systemd's units. */
  units: string;
}

export interface LinksPackage {
  name: string;
  /** The package of Go's plugins in the same place. */
  replaced: string;
  provided: { name: string; version: string }[];
  directory: { debian: string; rpm: string };
  /** Our units by the names of the replaced package's, for hosts that have enabled those. */
  unitAliases: { name: string; unit: string }[];
}

export const linksPackages: readonly LinksPackage[] = [
  {
    // For podman, containerd and others of the distribution.
    name: "patchbay-cni",
    replaced: "containernetworking-plugins",
    provided: [
      { name: "container-network-stack", version: "1" },
      { name: "containernetworking-plugins", version: REFERENCE_RELEASE },
    ],
    directory: { debian: "usr/lib/cni", rpm: "usr/libexec/cni" },
    unitAliases: unitNames(dhcpService.units).map((name, at) => ({
      name,
      unit: unitNames(dhcpService.packagedUnits)[at]!,
    })),
  },
  {
    // For kubelets, and engines that were installed by hand.
    name: "patchbay-opt-cni",
    replaced: "kubernetes-cni",
    provided: [{ name: "kubernetes-cni", version: REFERENCE_RELEASE }],
    directory: { debian: "opt/cni/bin", rpm: "opt/cni/bin" },
    unitAliases: [],
  },
];

interface Scripted {
  name: string;
  directories: readonly string[];
  replaced?: string;
}

/** A script of a package that a package manager runs, with what all of them share. */
export function script(
  path: string,
  { name, directories, replaced }: Scripted,
  rows: readonly ServiceRow[] = services,
): string {
  const [unasked, onRequest] = [true, false].map((isWanted) =>
    rows.filter(({ comesUnasked = false }) => comesUnasked === isWanted).map(({ packagedUnits }) => packagedUnits)
  );
  return filled(path, {
    UNITS: allUnits(rows.map(({ packagedUnits }) => packagedUnits)),
    SOCKETS_UNASKED: unasked!.flatMap((units) => unitNames(units)[0]!).join(" "),
    UNITS_ON_REQUEST: allUnits(onRequest!),
    SERVICES_ON_REQUEST: onRequest!.map(({ service }) => service.name).join(" "),
    BEFORE_REMOVAL: filled("release/before-removal.sh", { PROGRAM, REFUSED: String(REFUSED) }).trimEnd(),
    NAME: name,
    DIRECTORIES: directories.join(" "),
    REPLACED: replaced,
    PERMISSION: `${dirname(PROGRAM)}/${PERMISSION}`,
    PERMISSION_TEXT,
  });
}

function allUnits(units: readonly Units[]): string {
  return units.flatMap(unitNames).join(" ");
}

/** The text of a file, with values in the place of its marks, such as `@NAME@`. */
function filled(path: string, values: Readonly<Record<string, string | undefined>>): string {
  return fileOfCheckout(path).replaceAll(/@([A-Z_]+)@/g, (mark, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${path} has the mark ${mark}, and release/packages.ts no value for it`);
    return value;
  });
}

export function programEntries(program: string, edition: Edition, places: PackagePlaces): Entry[] {
  return [
    { path: PROGRAM, copyOf: program, isExecutable: true },
    ...PROGRAM_NAMES.map((name) => ({ path: `usr/bin/${name}`, leadsTo: relative("usr/bin", PROGRAM) })),
    // For helper_binaries_dir of podman.
    { path: `${dirname(PROGRAM)}/${NETAVARK}`, leadsTo: basename(PROGRAM) },
    ...manEntries(edition, places).map(compressed),
    ...completionEntries(places),
    ...schemaEntries("usr/share/patchbay/schemas/"),
    ...kubernetesEntries(KUBERNETES_PLACE),
    ...unitEntries(places),
  ];
}

export function unitEntries(
  { units }: Pick<PackagePlaces, "units">,
  rows: readonly ServiceRow[] = services,
): Entry[] {
  return rows.flatMap(({ packagedUnits }) => unitFiles(packagedUnits, `/${PROGRAM}`))
    .map(({ name, text }) => ({ path: `${units}${name}`, text }));
}

/** Links of plugins are relative within /usr, and absolute from elsewhere, as Debian Policy 10.5 has it. */
export function linkEntries({ unitAliases }: LinksPackage, directory: string, { units }: PackagePlaces): Link[] {
  const leadsTo = directory.startsWith("usr/") ? relative(directory, PROGRAM) : `/${PROGRAM}`;
  return [
    ...pluginNames.map((plugin) => ({ path: `${directory}/${plugin}`, leadsTo })),
    ...unitAliases.map(({ name, unit }) => ({ path: `${units}${name}`, leadsTo: unit })),
  ];
}
