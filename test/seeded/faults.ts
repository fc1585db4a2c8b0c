/**
 * Faults as a maintainer could make them: each changes one line, and the tests listed with it must notice. run.ts puts
 * them in. `find` is a part of the line that occurs nowhere else in the file.
 *
 * Longer than 300 lines: a table, one entry a fault.
 */
export interface Fault {
  file: string;
  find: string;
  replace: string;
  tests: readonly string[];
  /** A regular expression for the names of tests, for files that take long. */
  named?: string;
}

const protocol: Fault[] = [
  {
    file: "src/cni/versions.ts",
    find: "compareVersions(configVersion, since) < 0",
    replace: "compareVersions(configVersion, since) <= 0",
    tests: ["test/cni/versions.test.ts"],
  },
  {
    file: "src/cni/args.ts",
    find: "unknown.length > 0 && !ignoreUnknown",
    replace: "unknown.length > 0 && ignoreUnknown",
    tests: ["test/cni/args.test.ts"],
  },
  {
    file: "src/cni/invocation.ts",
    find: ": byteLength(name)) > IF_NAME_LIMIT_BYTES",
    replace: ": byteLength(name)) > IF_NAME_LIMIT_BYTES + 1",
    tests: ["test/cni/invocation.test.ts"],
  },
  {
    file: "src/cni/json.ts",
    find: "found = document[name] ?? found ?? null",
    replace: "found = document[name]",
    tests: ["test/cni/json.test.ts"],
  },
  {
    file: "src/cni/repeated-key.ts",
    find: "if (seen.has(key)) return key;",
    replace: "",
    tests: ["test/cni/repeated-key.test.ts"],
  },
];

const addresses: Fault[] = [
  {
    file: "src/net/address.ts",
    find: "(part.length > 1 && part[0]",
    replace: "(part.length > 2 && part[0]",
    tests: ["test/net/address.test.ts"],
  },
  {
    file: "src/net/address.ts",
    find: "halves.length === 2 ? given > 7",
    replace: "halves.length === 2 ? given > 8",
    tests: ["test/net/address.test.ts"],
  },
  {
    file: "src/ipam/range.ts",
    find: "compareAddresses(address, range.end) <= 0",
    replace: "compareAddresses(address, range.end) < 0",
    tests: ["test/ipam/range.test.ts", "test/ipam/allocator.test.ts"],
  },
  {
    file: "src/ipam/allocator.ts",
    find: "index === gatewayIndex || isResting(index)",
    replace: "isResting(index)",
    tests: ["test/ipam/allocator.test.ts"],
  },
  {
    file: "src/ipam/go-directory.ts",
    find: "O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW",
    replace: "O_WRONLY | O_CREAT | O_NOFOLLOW",
    tests: ["test/ipam/go-directory.test.ts"],
  },
  {
    file: "src/ipam/go-directory.ts",
    find: "if (found === text) removeFile(",
    replace: "if (found !== undefined) removeFile(",
    tests: ["test/ipam/claims.test.ts"],
  },
  {
    file: "src/ipam/go-directory.ts",
    find: "lockExclusive(fd, `${directory}/lock`);",
    replace: "",
    tests: ["test/ipam/claims.test.ts"],
  },
  {
    file: "src/ipam/claims.ts",
    find: "isFree ? 0 : tagOf(found!)",
    replace: "0",
    tests: ["test/ipam/claims.test.ts"],
  },
  {
    file: "src/ipam/blocks.ts",
    find: 'if (state === "damaged") setAside(store, name);',
    replace: "",
    tests: ["test/ipam/blocks.test.ts"],
  },
  {
    file: "src/ipam/store.ts",
    find: "lockRangeExclusive(store.locksFd, IN_USE);",
    replace: "",
    tests: ["test/ipam/processes.test.ts"],
  },
  {
    file: "src/plugins/ipam/host-local/host-local.ts",
    find: "if (requested.length === 0) return taken;",
    replace: "return taken;",
    tests: ["test/plugins/ipam/host-local/host-local.test.ts"],
  },
];

const system: Fault[] = [
  {
    file: "src/ffi/netns.ts",
    find: "libc.ioctl(fd, NS_GET_NSTYPE, null) !== CLONE_NEWNET",
    replace: "false",
    tests: ["test/kernel/netns-path.test.ts"],
  },
  {
    file: "src/iptables/which-iptables.ts",
    find: "if (fileId(`${directory}/xtables-legacy-multi`) === program)",
    replace: "if (fileId(`${directory}/xtables-legacy-multi`) !== undefined)",
    tests: ["test/iptables/which-iptables.test.ts"],
  },
  {
    file: "src/ffi/lock.ts",
    find: "F_OFD_SETLKW, F_WRLCK",
    replace: "F_OFD_SETLKW, F_RDLCK",
    tests: ["test/ffi/lock.test.ts"],
  },
  {
    file: "src/ffi/spawn.ts",
    find: "(status[0]! >> 8) & 0xff",
    replace: "status[0]! >> 16",
    tests: ["test/ffi/spawn.test.ts"],
  },
  {
    file: "src/ffi/netlink/transport.ts",
    find: "if (sender !== 0) continue;",
    replace: "",
    tests: ["test/ffi/netlink/exchange.test.ts"],
  },
  {
    file: "src/ffi/netlink/exchange.ts",
    find: "if (message.sequence !== ours || finished) return;",
    replace: "if (finished) return;",
    tests: ["test/ffi/netlink/exchange.test.ts"],
  },
  {
    file: "src/ffi/netlink/batch.ts",
    find: "if (!isErrno(error, ENOBUFS) || overrun) throw error;",
    replace: "throw error;",
    tests: ["test/ffi/netlink/batch.test.ts"],
  },
  {
    file: "src/ffi/netlink/wire.ts",
    find: "while (this.length % 4 !== 0)",
    replace: "while (this.length % 2 !== 0)",
    tests: ["test/ffi/netlink/wire.test.ts"],
  },
  {
    file: "src/ffi/netlink/wire.ts",
    find: "if (length < 4 || at + length > bytes.length)",
    replace: "if (length < 4)",
    tests: ["test/ffi/netlink/wire.test.ts"],
  },
  {
    file: "src/ffi/netlink/route/remove-link.ts",
    find: "if (ended) return delLink(socket, ifName);",
    replace: 'if (ended) return "deleted";',
    tests: ["test/ffi/netlink/socket.test.ts"],
  },
  {
    file: "src/ffi/netlink/nftables/batch.ts",
    find: "commit(socket, plan(), generation);",
    replace: "commit(socket, plan());",
    tests: ["test/ffi/netlink/nftables/batch.test.ts"],
  },
  {
    file: "src/ffi/netlink/nftables/comment.ts",
    find: "if (tag[index] !== list[index]) return false;",
    replace: "if (false) return false;",
    tests: ["test/kernel/firewall.test.ts"],
    named: "late DEL",
  },
  {
    file: "src/iptables/text-rule.ts",
    find: '...not ? ["!"] : [], option, formatPrefix(',
    replace: "option, formatPrefix(",
    tests: ["test/iptables/rule.test.ts"],
  },
  {
    file: "src/iptables/nft-table.ts",
    find: "if (rule === undefined || jumpTarget(rule.expressions) !== to) break;",
    replace: "if (rule === undefined) break;",
    tests: ["test/resources/packets/masquerade.test.ts"],
    named: "a rule where",
  },
  {
    file: "src/firewalld/client.ts",
    find: "if (!(error instanceof DbusError) || !error.message.includes(reason)) throw error;",
    replace: "if (!(error instanceof DbusError)) throw error;",
    tests: ["test/kernel/firewall-firewalld.test.ts"],
    named: "a zone that firewalld refuses",
  },
];

const resources: Fault[] = [
  {
    file: "src/resources/link/veth.ts",
    find: '(hostMac === "" || link.mac === hostMac)',
    replace: "true",
    tests: ["test/kernel/whose-link.test.ts"],
    named: "stranger",
  },
  {
    file: "src/resources/traffic/ifb.ts",
    find: 'mac !== "" ? link.mac !== mac :',
    replace: 'mac !== "" ? false :',
    tests: ["test/kernel/bandwidth.test.ts"],
    named: "took the name of ours",
  },
  {
    file: "src/resources/packets/shared/owned-table.ts",
    find: "if (element?.comment === owner) held.push(",
    replace: "if (element !== undefined) held.push(",
    tests: ["test/resources/packets/masquerade.test.ts"],
  },
  {
    file: "src/resources/packets/shared/backend.ts",
    find: "...isRestated ? this.others(spec) : []",
    replace: "...isRestated ? [] : []",
    tests: ["test/resources/packets/shared/backend.test.ts"],
  },
  {
    file: "src/resources/packets/masquerade/iptables.ts",
    find: "if (named?.network === network && !isValid(named))",
    replace: "if (named !== undefined && !isValid(named))",
    tests: ["test/resources/packets/masquerade.test.ts"],
    named: "GC removes",
  },
  {
    file: "src/resources/link/lent-link/lent-link.ts",
    find: "if (spec.netns !== undefined && netnsCookie(socket.fd) !== spec.netns) return undefined;",
    replace: "",
    tests: ["test/kernel/host-device.test.ts"],
    named: "who has the path",
  },
  {
    file: "src/resources/link/bridge.ts",
    find: "ports.every(({ master }) => master !== link.index)",
    replace: "true",
    tests: ["test/kernel/bridge-removal.test.ts"],
    named: "has joined it",
  },
  {
    file: "src/resources/link/bridge.ts",
    find: "if (created) removeUnused(spec, host);",
    replace: "removeUnused(spec, host);",
    tests: ["test/kernel/bridge-removal.test.ts"],
    named: "interface name taken",
  },
  {
    file: "src/resources/kernel/sysctls.ts",
    find: "|| !isSameValue(values[key]!, valueOf(key))) continue;",
    replace: ") continue;",
    tests: ["test/kernel/tuning.test.ts"],
  },
  {
    file: "src/resources/kernel/sysctls.ts",
    find: "Object.keys(values).reverse()",
    replace: "Object.keys(values)",
    tests: ["test/kernel/tuning.test.ts"],
    named: "another one changed",
  },
  {
    file: "src/resources/address/source-rule.ts",
    find: "if (table !== undefined && rule.table !== table) continue;",
    replace: "",
    tests: ["test/kernel/sbr.test.ts"],
    named: "leads elsewhere",
  },
  {
    file: "src/resources/packets/shared/owner-comment.ts",
    find: "ownerComment(owner) === comment ? owner : undefined",
    replace: "owner",
    tests: ["test/resources/packets/shared/owner-comment.test.ts"],
  },
  {
    file: "src/resources/link/tap/tap.ts",
    find: 'if (getLink(route, ifName)?.kind !== "tun") return;',
    replace: "",
    tests: ["test/kernel/tap.test.ts"],
    named: "took the tap",
  },
  {
    file: "src/resources/traffic/traffic-limit/token-bucket.ts",
    find: "Math.floor((rate * LATENCY_US) / US_PER_SECOND) + burst",
    replace: "Math.floor((rate * LATENCY_US) / US_PER_SECOND)",
    tests: ["test/resources/traffic/traffic-limit/token-bucket.test.ts"],
  },
];

const plugins: Fault[] = [
  {
    file: "src/plugins/main/bridge/bridge.ts",
    find: "interface: 2, gateway",
    replace: "interface: 1, gateway",
    tests: ["test/kernel/bridge-options.test.ts"],
  },
  {
    file: "src/plugins/shared/requested-mac.ts",
    find: "runtimeConfig?.mac || fromArgs || mac",
    replace: "fromArgs || runtimeConfig?.mac || mac",
    tests: ["test/kernel/tap.test.ts"],
    named: "the capability",
  },
  {
    file: "src/plugins/main/host-device/device.ts",
    find: '|| path.split("/").includes("..")',
    replace: "",
    tests: ["test/kernel/host-device.test.ts"],
    named: "cannot be had",
  },
  {
    file: "src/plugins/meta/tuning/allowlist.ts",
    find: "if (patterns.some((pattern) => pattern.test(key))) continue;",
    replace: "if (patterns.length > 0) continue;",
    tests: ["test/kernel/tuning.test.ts"],
  },
  {
    file: "src/plugins/meta/portmap/conditions.ts",
    find: "value <= most",
    replace: "value < most",
    tests: ["test/plugins/meta/portmap/conditions.test.ts"],
  },
  {
    file: "src/plugins/meta/sbr/source-tables.ts",
    find: "if (isLinkLocal(dst.bytes)) continue;",
    replace: "",
    tests: ["test/kernel/sbr.test.ts"],
  },
  {
    file: "src/plugins/meta/flannel/flannel.ts",
    find: "document.name !== network",
    replace: "false",
    tests: ["test/kernel/flannel.test.ts"],
  },
  {
    file: "src/plugins/meta/firewall/names.ts",
    find: "if (RESERVED.includes(name))",
    replace: "if (false)",
    tests: ["test/kernel/firewall.test.ts"],
  },
];

const engine: Fault[] = [
  {
    file: "src/engine/ledger/confirmation.ts",
    find: "if (!given.includes(address)) return false;",
    replace: "void address;",
    tests: ["test/engine/ledger/ledger.test.ts"],
  },
  {
    file: "src/engine/verbs/del.ts",
    find: "if (!isComplete) {",
    replace: "if (record === undefined) {",
    tests: ["test/differential/turns.test.ts"],
    named: "bridge, portmap",
  },
  {
    file: "src/engine/verbs/del.ts",
    find: "if (failures.length === before) removeAll(",
    replace: "removeAll(",
    tests: ["test/faults/errno-sweep.test.ts"],
    named: "^host-device DEL",
  },
  {
    file: "src/engine/verbs/del.ts",
    find: "return !mayBeTaken || !isAnotherContainers(owner, cookie);",
    replace: "return true;",
    tests: ["test/kernel/whose-link.test.ts"],
    named: "of two containers",
  },
  {
    file: "src/engine/ledger/claims.ts",
    find: ".filter(({ header }) => !isNamespaceGone(header.netnsPath))",
    replace: "",
    tests: ["test/engine/ledger/ledger.test.ts"],
  },
  {
    file: "src/resources/packets/masquerade/iptables.ts",
    find: "present === undefined ? others : others.filter(",
    replace: "present !== null ? others : others.filter(",
    tests: ["test/differential/turns.test.ts"],
    named: "ptp",
  },
  {
    file: "src/engine/operator/known-attachment.ts",
    find: "(ledgers.length === 0 || hasLinkOf(result, cached!.ifName, opened))",
    replace: "true",
    tests: ["test/runtime/cli/made-by-others.test.ts"],
  },
  {
    file: "src/engine/verbs/gc.ts",
    find: ".filter(({ header }) => !isValid(header))",
    replace: "",
    tests: ["test/kernel/whose-link.test.ts"],
    named: "of two containers",
  },
  {
    file: "src/contract/trace.ts",
    find: "isRegularFile(file) && (mode & 0o022) === 0",
    replace: "isRegularFile(file)",
    tests: ["test/contract/trace.test.ts"],
  },
  {
    file: "src/engine/judging.ts",
    find: "plugin.judge?.(conf, call);",
    replace: "if (call !== undefined) plugin.judge?.(conf, call);",
    tests: ["test/kernel/judging.test.ts"],
  },
  {
    file: "src/engine/open-host.ts",
    find: "cookie !== undefined && container.cookie !== cookie",
    replace: "false",
    tests: ["test/kernel/whose-link.test.ts"],
    named: "of two containers",
  },
  {
    file: "src/engine/delegation/find-plugin.ts",
    find: "if ((mode & 0o002) === 0) return;",
    replace: "return;",
    tests: ["test/engine/delegation/find-plugin.test.ts"],
  },
  {
    file: "src/engine/ledger/record.ts",
    find: "JSON.parse(value.stdin);",
    replace: "void value.stdin;",
    tests: ["test/kernel/bridge-removal.test.ts"],
    named: "in the configuration",
  },
  {
    file: "src/engine/state-directory.ts",
    find: "|| (mode & 0o022) !== 0",
    replace: "",
    tests: ["test/engine/ledger/ledger.test.ts", "test/engine/exec-plugin.test.ts"],
  },
  {
    file: "src/engine/delegation/delegate.ts",
    find: 'foreign().runForeignPlugin(path, { ...call, command: "DEL" });',
    replace: "",
    tests: ["test/engine/delegation/delegate.test.ts"],
  },
  {
    file: "src/engine/delegation/foreign-plugin.ts",
    find: '&& !name.startsWith("BUN_")',
    replace: "",
    tests: ["test/engine/delegation/foreign-plugin.test.ts"],
  },
  {
    file: "src/runtime/chain.ts",
    find: "collectFailures(plugins.toReversed(), ",
    replace: "collectFailures(plugins, ",
    tests: ["test/runtime/chain.test.ts"],
  },
  {
    file: "src/runtime/chain.ts",
    find: "if (wasAttached) throw error;",
    replace: "",
    tests: ["test/runtime/chain.test.ts"],
  },
  {
    file: "src/contract/failures.ts",
    find: "if (failures.length === 1) throw failures[0];",
    replace: "if (failures.length === 1) return;",
    tests: ["test/contract/failures.test.ts"],
  },
  {
    file: "src/runtime/lock.ts",
    find: "{ start: 0, length: 0 }",
    replace: "{ start: 0, length: 1 }",
    tests: ["test/runtime/lock.test.ts"],
  },
  {
    file: "src/runtime/cache.ts",
    find: 'return isSame ? { state: "present", record } : { state: "foreign" };',
    replace: 'return { state: "present", record };',
    tests: ["test/runtime/cache.test.ts"],
  },
  {
    file: "compile/entry.ts",
    find: "out.entry = address + entry;",
    replace: "out.entry = original.entry;",
    tests: ["test/compile/entry.test.ts"],
  },
  {
    file: "compile/bun-executable.mjs",
    find: "if (integrity !== locked.integrity)",
    replace: "if (integrity === undefined)",
    tests: ["test/compile/bun-executable.test.ts"],
  },
  {
    file: "compile/entry.ts",
    find: "const offset = roundUp(program.length, alignment);",
    replace: "const offset = roundUp(program.length, 4096);",
    tests: ["test/compile/entry.test.ts"],
  },
];

const dhcp: Fault[] = [
  {
    file: "src/dhcp/v4/message/message.ts",
    find: "    if (at + 2 + length > field.length) return false;",
    replace: "",
    tests: ["test/dhcp/v4/message.test.ts"],
  },
  {
    file: "src/dhcp/names.ts",
    find: "!isDomainName(read.name) || ",
    replace: "",
    tests: ["test/dhcp/v4/message.test.ts"],
  },
  {
    file: "src/dhcp/v4/message/packet.ts",
    find: "if (isSummed && ",
    replace: "if (",
    tests: ["test/dhcp/v4/packet.test.ts"],
  },
  {
    file: "src/dhcp/v4/lease/identity.ts",
    find: "ownOptions.has(number)",
    replace: "ownOptions.has(-1)",
    tests: ["test/dhcp/v4/identity.test.ts"],
  },
  {
    file: "src/dhcp/v4/lease/client.ts",
    find: "    if (!wasRequesting) return this.sendDiscover(now);",
    replace: "    return this.sendDiscover(now);",
    tests: ["test/dhcp/v4/client.test.ts"],
  },
  {
    file: "src/dhcp/v4/lease/request.ts",
    find: "[[option.server, server]], address);",
    replace: "[[option.server, server], [option.requestedAddress, address]], address);",
    tests: ["test/dhcp/v4/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/message.ts",
    find: "    if (end > field.length) return undefined;",
    replace: "",
    tests: ["test/dhcp/v6/message.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/message.ts",
    find: "bytes.length <= LONGEST_DUID",
    replace: "bytes.length <= LONGEST_DUID + 1",
    tests: ["test/dhcp/v6/message.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/offer.ts",
    find: "(top & 0xe0) === 0x20",
    replace: "(top & 0xc0) === 0",
    tests: ["test/dhcp/v6/offer.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/offer.ts",
    find: "if (preferred > valid) ",
    replace: "if (preferred > valid + 1) ",
    tests: ["test/dhcp/v6/offer.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/offer.ts",
    find: "ia.renew > ia.rebind && ia.rebind > 0",
    replace: "ia.renew > ia.rebind && ia.rebind < 0",
    tests: ["test/dhcp/v6/offer.test.ts"],
  },
  {
    file: "src/dhcp/v6/message/offer.ts",
    find: "labels.length === 0 && names.length > 0",
    replace: "names.length > 0",
    tests: ["test/dhcp/v6/offer.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/request.ts",
    find: "message(RELEASE, who, exchange, [[option.server, server], ia(who, address)]);",
    replace: "message(RELEASE, who, exchange, [[option.server, server], ia(who)]);",
    tests: ["test/dhcp/v6/request.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/request.ts",
    find: "message(CONFIRM, who, exchange, [ia(who, address)]);",
    replace: "message(CONFIRM, who, exchange, [ia(who, address), ...wishes(who)]);",
    tests: ["test/dhcp/v6/request.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/identity.ts",
    find: "hash(ifName).slice(0, IAID_BYTES)",
    replace: 'hash("").slice(0, IAID_BYTES)',
    tests: ["test/dhcp/v6/identity.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/timers.ts",
    find: "  return pause > longest ? longest * (1 + spread) : pause;",
    replace: "  return pause;",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/timers.ts",
    find: "SPREAD * (1 - random)",
    replace: "SPREAD * (0.5 - random)",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/lease.ts",
    find: "since + offered.binding.valid",
    replace: "since + offered.binding.preferred",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "clientId !== undefined && isSame(clientId, this.who.duid)",
    replace: "clientId !== undefined",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "if (asked !== undefined && !isSame(server, asked))",
    replace: "if (asked !== undefined && server.length === 0)",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "if (!this.isAwaited && now < this.sent + SHORTEST_PAUSE_S) {",
    replace: "if (this.sent > now) {",
    tests: ["test/dhcp/v6/renewal.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "if (type === REPLY && first(options, option.rapidCommit) === undefined) return [];",
    replace: "",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "if (!isNew || !this.settings.probe) return",
    replace: "if (!this.settings.probe) return",
    tests: ["test/dhcp/v6/confirm.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "    if (now < endOf(lease)) return this.adopt(lease, now);",
    replace: "",
    tests: ["test/dhcp/v6/confirm.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "reply.preference > this.best.preference",
    replace: "reply.preference >= this.best.preference",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "const isTemporary = code === status.unspecified || code === status.useMulticast;",
    replace: "const isTemporary = code === status.unspecified;",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: '    if (state === "soliciting") this.solicitPause = this.pause;',
    replace: "",
    tests: ["test/dhcp/v6/client.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "if (reply.status.code !== status.notOnLink) return this.note(reply);",
    replace: "return this.note(reply);",
    tests: ["test/dhcp/v6/confirm.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "this.wake = now + reply.refresh;",
    replace: "this.wake = Infinity;",
    tests: ["test/dhcp/v6/release.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: 'const state = now < since + binding.rebind ? "renewing" : "rebinding";',
    replace: 'const state = "renewing";',
    tests: ["test/dhcp/v6/renewal.test.ts"],
  },
  {
    file: "src/dhcp/v6/lease/client.ts",
    find: "this.lease === undefined ? Infinity : endOf(this.lease)",
    replace: "Infinity",
    tests: ["test/dhcp/v6/renewal.test.ts"],
  },
];

const resident: Fault[] = [
  {
    file: "src/engine/ledger/open-ledger.ts",
    find: "if (!isRemoved || attempt === ATTEMPTS) throw error;",
    replace: "if (isRemoved || attempt > 0) throw error;",
    tests: ["test/faults/many-at-once.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: "  CALL2(shutdown, resident, SHUT_READING);",
    replace: "",
    tests: ["test/resident/taken-back.test.ts"],
  },
  {
    file: "src/ffi/kept.ts",
    find: "if (this.isFresh(value)) return value;",
    replace: "return value;",
    tests: ["test/ffi/kept.test.ts"],
  },
  {
    file: "src/engine/verbs/add.ts",
    find: "return begun.header.caller === processId",
    replace: "return begun.header.caller !== processId",
    tests: ["test/resident/resident.test.ts"],
  },
  {
    file: "src/engine/verbs/add.ts",
    find: " || begun.adds.length > 1",
    replace: "",
    tests: ["test/resident/taken-back.test.ts"],
  },
  {
    file: "src/resident/declining.ts",
    find: 'isForeign(type, pluginPath) ? "foreign plugin"',
    replace: 'isForeign(type, "") ? "foreign plugin"',
    tests: ["test/resident/runtime.test.ts"],
  },
  {
    file: "src/native/entry.c",
    find: "    if (character != *prefix) return 0;",
    replace: "    if (character != *prefix && *text == 0) return 0;",
    tests: ["test/compile/entry.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: "return answer == DECLINED ? ALONE : AGAIN;",
    replace: "return ALONE;",
    tests: ["test/resident/taken-back.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: "peer.user == (uint32_t)CALL0(geteuid)",
    replace: "peer.user + 1 != 0",
    tests: ["test/resident/strangers.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: "(uint64_t)done->stdout_bytes + done->stderr_bytes",
    replace: "done->stdout_bytes + done->stderr_bytes",
    tests: ["test/resident/strangers.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: "rights->length == 24 && rights->level == SOL_SOCKET_ && rights->type == SCM_RIGHTS_",
    replace: "rights != 0",
    tests: ["test/resident/strangers.test.ts"],
  },
  {
    file: "src/native/launch.h",
    find: " || (found < 0 && patience_ms < 0)",
    replace: "",
    tests: ["test/resident/strangers.test.ts"],
    named: "is waited for",
  },
  {
    file: "src/native/launch.h",
    find: "is_kept && CALL3(dup3, file, 0, 0) < 0 && tries < TRIES",
    replace: "is_kept && CALL3(dup3, file, 0, 0) < 0 && tries < 0",
    tests: ["test/resident/launcher-sweep.test.ts"],
  },
  {
    file: "src/resident/worker.ts",
    find: "for (const fd of descriptors) closeFile(fd);",
    replace: "void closeFile;",
    tests: ["test/resident/crowd.test.ts"],
  },
  {
    file: "src/ffi/shared-wait.ts",
    find: "this.add(shared, EPOLLIN | EPOLLEXCLUSIVE);",
    replace: "this.add(shared, EPOLLIN);",
    tests: ["test/resident/crowd.test.ts"],
  },
  {
    file: "src/resident/build.ts",
    find: "offset + BUILD_AT",
    replace: "0",
    tests: ["test/resident/builds.test.ts"],
  },
  {
    file: "src/resident/likeness.ts",
    find: 'if (links.some((link, index) => link !== own!.links[index])) return "namespace";',
    replace: 'if (links.length === 0) return "namespace";',
    tests: ["test/resident/resident.test.ts"],
  },
  {
    file: "src/resident/worker.ts",
    find: "isGone: () => isGone(connection)",
    replace: "isGone: () => false",
    tests: ["test/resident/taken-back.test.ts"],
  },
  {
    file: "src/resident/worker.ts",
    find: "counters.count(`${DECLINED_BECAUSE}${reason}`);",
    replace: "void DECLINED_BECAUSE;",
    tests: ["test/resident/service.test.ts"],
  },
  {
    file: "src/resident/workers.ts",
    find: "for (const [name, times] of readPage(worker.page)?.counts ?? []) this.totals.count(name, times);",
    replace: "void readPage;",
    tests: ["test/resident/service.test.ts"],
  },
  {
    file: "src/resident/serve.ts",
    find: "    while (forgetEnded().areRunning) {",
    replace: "    while (!forgetEnded().areRunning) {",
    tests: ["test/resident/service.test.ts"],
  },
  {
    file: "src/resident/serve.ts",
    find: "    blockSignals(signals);",
    replace: "    void blockSignals;",
    tests: ["test/resident/service.test.ts"],
  },
  {
    file: "src/resident/own-file.ts",
    find: '    if (obstacle === undefined) return "replaced";',
    replace: '    return "replaced";',
    tests: ["test/resident/upgrade.test.ts"],
  },
  {
    file: "src/resident/socket.ts",
    find: "    if (this.isOwn && this.isInPlace()) removeFile(SOCKET_PATH);",
    replace: "    removeFile(SOCKET_PATH);",
    tests: ["test/resident/service.test.ts", "test/resident/systemd.test.ts"],
  },
  {
    file: "src/resident/socket.ts",
    find: "return pid !== 0 && hasEnded(pid) ? undefined : pid;",
    replace: "return pid;",
    tests: ["test/resident/service.test.ts"],
  },
  {
    file: "src/runtime/cli/resident-units.ts",
    find: "  if (present !== undefined && !present.startsWith(MARK)) {",
    replace: '  if (present === "") {',
    tests: ["test/resident/systemd.test.ts"],
  },
  {
    file: "src/ffi/spawn.ts",
    find: "  flagsForAll |= POSIX_SPAWN_SETSIGMASK;",
    replace: "  void POSIX_SPAWN_SETSIGMASK;",
    tests: ["test/ffi/signals.test.ts"],
  },
];

export const faults: readonly Fault[] = [
  ...protocol,
  ...addresses,
  ...system,
  ...resources,
  ...plugins,
  ...engine,
  ...dhcp,
  ...resident,
];
