/**
 * Plugins that are wrong in one way each, and the demands that each does not meet.
 *
 * Longer than 300 lines: a table, one entry a wrong plugin.
 */
export interface Wrong {
  /** What it stands in the place of. */
  plugin: string;
  script: string;
  /** The demands that it does not meet. */
  fails: readonly string[];
  /** In what was seen of the first of them. */
  seen: RegExp;
}

/** Everything that is not wrong is done by ours. */
const otherwise = (plugin: string) => `exec $real/${plugin}`;
const when = (command: string, script: string, plugin: string) =>
  `if [ "$CNI_COMMAND" = ${command} ]; then ${script}; fi\n${otherwise(plugin)}`;

const refuse = (msg: string) => `{ echo '{"code":999,"msg":"${msg}"}'; exit 1; }`;

/** The demands for which a plugin has to fail. */
const failingCalls = [
  "error-unsupported-version",
  "error-unknown-command",
  "error-without-containerid",
  "error-without-netns",
  "error-without-ifname",
  "error-invalid-containerid",
  "error-invalid-ifname",
  "error-invalid-ifname-code",
  "error-undecodable",
  "error-invalid-network-name",
];

/** ADD whose result, but not whose error, is changed. */
const changed = (plugin: string, edit: string) =>
  `out=$($real/${plugin}) || { printf %s "$out"; exit 1; }; printf %s "$out" | sed '${edit}'; exit`;

export const wrongPlugins: Readonly<Record<string, Wrong>> = {
  "text before the result": {
    plugin: "bridge",
    script: when("ADD", changed("bridge", "1i attaching"), "bridge"),
    fails: ["add-succeeds"],
    seen: /: stdout is not one JSON document: ADD .*attaching \{/,
  },
  "two documents": {
    plugin: "static",
    script: when("ADD", changed("static", "$a {}"), "static"),
    fails: ["add-succeeds"],
    seen: /not one JSON document/,
  },
  "errors on stderr only": {
    plugin: "loopback",
    script: `out=$($real/loopback) || { echo "$out" >&2; exit 1; }; printf %s "$out"`,
    fails: [
      "error-document",
      "error-states-version",
      ...failingCalls,
    ],
    seen: /nothing on stdout, stderr \{.*incompatible CNI versions/,
  },
  "exit status 0 for errors": {
    plugin: "loopback",
    script: "$real/loopback; exit 0",
    fails: [
      "error-document",
      "error-states-version",
      "error-exit-status",
      ...failingCalls,
    ],
    seen: /: no error: ADD ended with exit status 0/,
  },
  "code 100 for all errors": {
    plugin: "static",
    script: `out=$($real/static); status=$?; printf %s "$out" | sed 's/"code": [0-9]*/"code": 100/'; exit $status`,
    fails: failingCalls.filter((name) => name !== "error-invalid-ifname"),
    seen: /: the error's code is 100 instead of 1/,
  },
  "always the newest version": {
    plugin: "static",
    script: when("ADD", changed("static", `s/"cniVersion": "[^"]*"/"cniVersion": "1.1.0"/`), "static"),
    fails: ["result-in-version-asked-for"],
    seen: /asked in 0\.1\.0: "cniVersion" is "1\.1\.0"; asked in 0\.2\.0/,
  },
  "the result of an older version": {
    plugin: "bridge",
    script: when("ADD", changed("bridge", `s/"address"/"version": "4", "address"/`), "bridge"),
    fails: ["result-in-version-asked-for"],
    seen: /asked in 1\.0\.0: an address with a "version"/,
  },
  "no sandbox in the result": {
    plugin: "ptp",
    script: when("ADD", changed("ptp", `s/"sandbox"/"box"/`), "ptp"),
    fails: [
      "result-names-interface",
      "add-makes-interface",
      "add-sets-addresses",
      "check-after-add",
      "gc-keeps-valid",
    ],
    seen: /no interface eth0 with sandbox/,
  },
  "prevResult dropped": {
    plugin: "tuning",
    script: when(
      "ADD",
      `out=$($real/tuning) || { printf %s "$out"; exit 1; }; printf %s "$out" | grep -o '"cniVersion": "[^"]*"' | sed 's/.*/{&}/'; exit`,
      "tuning",
    ),
    fails: ["prevresult-passed-through"],
    seen: /: the result lacks .*10\.99\.0\.2/,
  },
  "CHECK that always succeeds": {
    plugin: "bridge",
    script: when("CHECK", "exit 0", "bridge"),
    fails: ["check-interface-gone", "check-address-gone", "check-needs-prevresult"],
    seen: /: no error: CHECK/,
  },
  "CHECK that says so": {
    plugin: "static",
    script: when("CHECK", "echo '{}'", "static"),
    fails: ["success-prints-nothing"],
    seen: /says something on stdout: CHECK/,
  },
  "a second DEL fails": {
    plugin: "bridge",
    script: when(
      "DEL",
      `mark=/run/$CNI_CONTAINERID; [ ! -e $mark ] || { echo '{"code":999,"msg":"no such container"}'; exit 1; }; $real/bridge; status=$?; [ -n "$CNI_NETNS" ] && [ -e "$CNI_NETNS" ] && : > $mark; exit $status`,
      "bridge",
    ),
    fails: ["del-clears-host", "del-after-failed-add", "del-twice"],
    seen: /file \/run\/conformance-c1/,
  },
  "DEL needs CNI_NETNS": {
    plugin: "bridge",
    script: when("DEL", `[ -n "$CNI_NETNS" ] || { echo '{"code":4,"msg":"CNI_NETNS missing"}'; exit 1; }`, "bridge"),
    fails: ["del-empty-netns", "del-empty-netns-frees-addresses"],
    seen: /CNI_NETNS missing.*\(CNI_NETNS empty\)$/,
  },
  "DEL needs the namespace": {
    plugin: "loopback",
    script: when(
      "DEL",
      `[ -z "$CNI_NETNS" ] || ip -n "\${CNI_NETNS##*/}" link show >/dev/null || { echo '{"code":999,"msg":"it is gone"}'; exit 1; }`,
      "loopback",
    ),
    fails: ["del-gone-netns", "del-gone-netns-clears-host", "del-stale-netns-path"],
    seen: /it is gone/,
  },
  "DEL needs prevResult": {
    plugin: "static",
    script: `in=$(cat)
if [ "$CNI_COMMAND" = DEL ]; then case $in in *prevResult*) ;; *) echo '{"code":7,"msg":"no prevResult"}'; exit 1;; esac; fi
printf %s "$in" | $real/static`,
    fails: ["del-never-added", "del-without-prevresult"],
    seen: /no prevResult/,
  },
  "DEL that does nothing": {
    plugin: "ptp",
    script: when("DEL", "exit 0", "ptp"),
    fails: [
      "del-clears-namespace",
      "del-clears-host",
      "del-frees-addresses",
      "del-empty-netns-frees-addresses",
      "del-gone-netns-clears-host",
    ],
    seen: /left in the namespace after DEL: .*link eth0/,
  },
  "DEL that keeps the lease": {
    plugin: "host-local",
    script: when("DEL", "exit 0", "host-local"),
    fails: [
      "del-clears-host",
      "del-frees-addresses",
      "del-empty-netns-frees-addresses",
      "del-gone-netns-clears-host",
    ],
    seen: /left on the host after DEL: file \/var\/lib\/cni/,
  },
  "GC that does nothing": {
    plugin: "host-local",
    script: when("GC", "exit 0", "host-local"),
    fails: ["gc-frees-addresses"],
    seen: /the only address is not free/,
  },
  "GC that removes everything": {
    plugin: "host-local",
    script: when("GC", "rm -r /var/lib/cni/networks; exit 0", "host-local"),
    fails: ["gc-keeps-valid"],
    seen: /: CHECK ended with exit status 1/,
  },
  "STATUS that says so": {
    plugin: "static",
    script: when("STATUS", "echo ready", "static"),
    fails: ["success-prints-nothing"],
    seen: /stdout ready/,
  },
  "always ready": {
    plugin: "bridge",
    script: when("STATUS", "exit 0", "bridge"),
    fails: ["status-not-ready"],
    seen: /: no error: STATUS ended with exit status 0/,
  },
  "a failed ADD leaves a file": {
    plugin: "ptp",
    script: when("ADD", "$real/ptp || { : > /run/left-$CNI_CONTAINERID; exit 1; }; exit", "ptp"),
    fails: ["del-after-failed-add"],
    seen: /left on the host after DEL: file \/run\/left-conformance-c2/,
  },
  "args are not read": {
    plugin: "static",
    script: `sed 's/"cni":/"other":/' | $real/static`,
    fails: ["args-ips"],
    seen: /10\.99\.0\.77\/24 was asked for, and the result has \["10\.99\.0\.9\/24"\]/,
  },
  "rates of the runtime are not set": {
    plugin: "bandwidth",
    script: "sed s/runtimeConfig/runtimeconf/ | $real/bandwidth",
    fails: ["capability-bandwidth"],
    seen: /no limit of 8000000 bit\/s and no limit of 16000000 bit\/s after ADD; seen are none/,
  },
  "no supportedVersions": {
    plugin: "static",
    script: when("VERSION", `echo '{"cniVersion":"1.1.0"}'; exit`, "static"),
    fails: ["version-lists-supported", "version-of-newer-runtime", "version-without-stdin"],
    seen: /"supportedVersions" is no list of versions/,
  },
  "VERSION needs a configuration": {
    plugin: "static",
    script: when("VERSION", `[ -n "$(cat)" ] || { echo '{"code":6,"msg":"empty"}'; exit 1; }`, "static"),
    fails: ["version-without-stdin"],
    seen: /"empty"/,
  },
  "no word about itself": {
    plugin: "static",
    script: `[ -n "$CNI_COMMAND" ] || exit 1; ${otherwise("static")}`,
    fails: ["about-without-command"],
    seen: /: the call without CNI_COMMAND ended with exit status 1/,
  },
  "the MAC address is the plugin's": {
    plugin: "bridge",
    script: "sed s/runtimeConfig/runtimeconf/ | $real/bridge",
    fails: ["capability-mac", "capability-ips"],
    seen: /02:00:00:00:00:77 was asked for, and eth0 has/,
  },
  "labels are not understood": {
    plugin: "static",
    script:
      `in=$(cat); case $in in *'"labels"'*) echo '{"code":2,"msg":"unknown key labels"}'; exit 1;; esac; printf %s "$in" | $real/static`,
    fails: ["args-ignored"],
    seen: /unknown key labels/,
  },
  "pods are not understood": {
    plugin: "static",
    script: `[ -z "$CNI_ARGS" ] || { echo '{"code":4,"msg":"CNI_ARGS"}'; exit 1; }; ${otherwise("static")}`,
    fails: ["cni-args-ignored"],
    seen: /"CNI_ARGS"/,
  },
  "ten megabytes": {
    plugin: "static",
    script: when("STATUS", "head -c 10485760 /dev/zero | tr '\\0' x; exit 0", "static"),
    fails: ["status-succeeds"],
    seen: /: STATUS wrote 10485760 bytes or more to stdout: xxx/,
  },
  "output without end": {
    plugin: "static",
    script: when("GC", "yes >&2 & sleep 1; kill $!; exit 0", "static"),
    fails: ["gc-empty-list", "gc-keeps-valid"],
    seen: /: GC wrote \d{7,} bytes or more to stderr: y y y/,
  },
  "ended by a signal": {
    plugin: "static",
    script: when("GC", "kill -SEGV $$", "static"),
    fails: ["gc-empty-list", "gc-keeps-valid"],
    seen: /: GC was ended by signal 11/,
  },
  "no version in the answer to VERSION": {
    plugin: "static",
    script: when("VERSION", `echo '{"supportedVersions":["0.4.0","1.0.0","1.1.0"]}'; exit`, "static"),
    fails: ["version-states-its-own"],
    seen: /"cniVersion" is undefined/,
  },
  "routes without a destination": {
    plugin: "host-local",
    script: `[ "$CNI_COMMAND" = ADD ] || { sed 's/"to":/"dst":/' | $real/host-local; exit; }
${changed("host-local", `s/"dst":/"to":/`)}`,
    fails: ["result-fields"],
    seen: /the result has no destination: \{"to":"0\.0\.0\.0\/0"\}/,
  },
  "an IPAM plugin with interfaces": {
    plugin: "static",
    script: when("ADD", changed("static", `1s/{/{"interfaces":[],/`), "static"),
    fails: ["ipam-result-without-interfaces"],
    seen: /the result is \{"interfaces":\[\]/,
  },
  "ADD that takes an interface's place": {
    plugin: "bridge",
    script: when("ADD", `ip -n "\${CNI_NETNS##*/}" link del "$CNI_IFNAME" 2>/dev/null`, "bridge"),
    fails: ["add-refuses-existing-interface"],
    seen: /: no error: ADD ended with exit status 0/,
  },
  "DEL that always fails": {
    plugin: "static",
    script: when("DEL", refuse("not now"), "static"),
    fails: [
      "del-succeeds",
      "del-clears-namespace",
      "del-clears-host",
      "del-twice",
      "del-never-added",
      "del-without-prevresult",
      "del-empty-netns",
      "del-gone-netns",
      "del-gone-netns-clears-host",
      "del-stale-netns-path",
    ],
    seen: /"not now"/,
  },
  "capabilities are not understood": {
    plugin: "static",
    script: `in=$(cat); case $in in *com.example*) ${
      refuse("unknown capability")
    };; esac; printf %s "$in" | $real/static`,
    fails: ["runtime-config-ignored"],
    seen: /"unknown capability"/,
  },
  "CHECK of short container IDs alone": {
    plugin: "static",
    script: when("CHECK", `[ \${#CNI_CONTAINERID} -lt 64 ] || ${refuse("too long")}`, "static"),
    fails: ["long-container-id"],
    seen: /: CHECK ended with exit status 1, .*"too long"/,
  },
  "ports of the runtime are not published": {
    plugin: "portmap",
    script: "sed s/runtimeConfig/runtimeconf/ | $real/portmap",
    fails: ["capability-port-mappings"],
    seen: /no packet rule is new after ADD/,
  },
  "one rate of the runtime is not set": {
    plugin: "bandwidth",
    script: `sed 's/"egressRate":16000000/"egressRate":8000000/' | $real/bandwidth`,
    fails: ["capability-bandwidth"],
    seen: /no limit of 16000000 bit\/s after ADD; seen are limit of 8000000 bit\/s on/,
  },
  "rates stay": {
    plugin: "bandwidth",
    script: when("DEL", "exit 0", "bandwidth"),
    fails: ["del-clears-host", "del-gone-netns-clears-host", "capability-bandwidth"],
    seen: /left on the host after DEL: .*; limit of 8000000 bit\/s on h-c1/,
  },
};
