/* What the first code has in common with the program. `npm run generate` writes it (compile/native-header.ts).
 * A LIST is texts that end with NUL, and an empty one behind the last. */
#pragma once

#define SOCKET_PATH "/run/patchbay/serve.sock"
#define BOARD_PATH "/run/patchbay/serve~board"
#define TURNS_PATH "/run/patchbay/serve~turns"
enum { PROTOCOL = 826426192, MESSAGE_BYTES = 196608, BUILD_BYTES = 20, SLOTS = 128 };
enum answer { READY = 1, DECLINED = 2, DONE = 3, DONE_IN_FILES = 4, PROVE = 5 };

/* Words that read stdin, of a driver of podman's networks and of the runtime; and those of netavark's that a resident runs. */
#define DRIVER_VERBS_LIST "create\000" \
  "setup\000" \
  "teardown\000"
#define COMMANDS_WITH_STDIN_LIST "hook\000"
#define NETAVARK_SERVED_LIST "setup\000" \
  "teardown\000"

/* A prefix may stand before a plugin's name, but these are none. A project's name is followed by the plugin that it means. */
#define NO_PLUGINS_LIST "netavark-bridge\000" \
  "netavark-vlan\000"
#define PROJECTS_LIST "ovs-cni\000" \
  "ovs\000"

/* EACH(plugins, document, about) for plugins that support the same versions: the answer to VERSION, and what follows the
 * plugin's name when there is no command. */
#define ABOUT "CNI "
#define FOR_PLUGINS(EACH) \
  EACH("bandwidth\000", \
       "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n", \
       " plugin v1.10.0+patchbay.0.2.0\nCNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n") \
  EACH("bridge\000" "dhcp\000" "dummy\000" "flannel\000" "host-device\000" "host-local\000" "ipvlan\000" "loopback\000" "macvlan\000" "ovs\000" "patchbay-cluster\000" "portmap\000" "ptp\000" "sbr\000" "static\000" "tap\000" "tuning\000" "vlan\000", \
       "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n", \
       " plugin v1.10.0+patchbay.0.2.0\nCNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n") \
  EACH("firewall\000", \
       "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n", \
       " plugin v1.10.0+patchbay.0.2.0\nCNI protocol versions supported: 0.4.0, 1.0.0, 1.1.0\n") \
  EACH("vrf\000", \
       "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n", \
       " plugin v1.10.0+patchbay.0.2.0\nCNI protocol versions supported: 0.3.1, 0.4.0, 1.0.0, 1.1.0\n")

/* The error of a name that is no plugin's: before the name, and after it. */
#define NO_PLUGIN "{\n    \"code\": 999,\n    \"msg\": \"invalid plugin name: "
#define NO_PLUGIN_END "\",\n    \"details\": \"this program is patchbay, which has no such plugin; \\\"patchbay --help\\\" lists those that it has\"\n}"
