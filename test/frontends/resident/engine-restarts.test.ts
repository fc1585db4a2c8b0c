/**
 * An engine that is killed and started again and again, before, during and after its call, and the resident with it each
 * tenth time: there is never more than one resident, and the last one has what the first one had. A full sweep does that
 * a thousand times.
 */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { inOwnSystem } from "../../support/own-system.ts";

// It is about residents that calls start.
delete process.env.PATCHBAY_TEST_RESIDENT;

const RESTARTS = 200, TIMES = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 5 : 1;

test.each(Array.from({ length: TIMES }, (_, at) => at + 1))(`${RESTARTS} restarts of an engine (%i)`, async () => {
  await using machine = await openMachine();
  const said = await inOwnSystem(
    machine,
    `
    until_true starts_one; until_true is_served
    # A worker's pipe may be about to close.
    descriptors() { ls /proc/$(resident)/fd | wc -l; }
    same_descriptors() { [ "$(descriptors)" = $before ]; }
    before=$(descriptors)
    at_most_one() { [ "$(residents)" -le 1 ]; }
    export CNI_COMMAND=DEL CNI_CONTAINERID=x CNI_IFNAME=eth0 CNI_PATH=/run/cni
    n=0; while [ $n -lt ${RESTARTS} ]; do
      n=$((n+1))
      setsid sh -c '/run/cni/bridge </run/conf; echo done >/run/done; exec sleep 60' >/dev/null 2>&1 & engine=$!
      case $((n % 4)) in
        0) ;;
        1) sleep 0.003;;
        2) sleep 0.0$((n % 20 + 10));;
        3) until [ -e /run/done ]; do sleep 0.005; done;;
      esac
      [ $((n % 10)) != 0 ] || kill -9 $(resident) 2>/dev/null || true
      # It may not be the leader of its group yet.
      until kill -9 -$engine 2>/dev/null; do sleep 0.001; done
      wait $engine 2>/dev/null || true
      rm -f /run/done
      # A child has its parent's name until it executes its program.
      at_most_one || { sleep 0.2; at_most_one; } || echo "$(residents) residents after $n"
    done
    until_true starts_one; until_true is_served
    until_true same_descriptors; echo the same descriptors
    # The resident, its worker, and whoever asks.
    only_ours() { [ "$(pgrep -fc '^patchbay serve')" = 2 ]; }
    until_true only_ours; echo no other process
  `,
  );
  expect(said.trim().split("\n")).toEqual(["the same descriptors", "no other process"]);
});
