/** Limits from the configuration, or else from the capability. */
import { expect, test } from "bun:test";
import type { BandwidthConf } from "../../../../src/plugins/meta/bandwidth/bandwidth.schema.ts";
import { hasLimits, limitsOf } from "../../../../src/plugins/meta/bandwidth/limits.ts";

const of = (written: Partial<BandwidthConf>) => limitsOf(written as BandwidthConf);
const ingress = { ingressRate: 8000, ingressBurst: 88 }, egress = { egressRate: 15, egressBurst: 8 };

test("bits become bytes, rounded down, each direction by itself", () => {
  expect(of({ ...ingress, ...egress })).toEqual({
    ingress: { rate: 1000, burst: 11 },
    egress: { rate: 1, burst: 1 },
  });
  expect(of(ingress)).toEqual({ ingress: { rate: 1000, burst: 11 } });
  expect(of(egress)).toEqual({ egress: { rate: 1, burst: 1 } });
  expect(of({ ingressRate: 0, ingressBurst: 0 })).toEqual({});
  expect(of({ ingressRate: 8, ingressBurst: (0xffffffff - 1) * 8 + 7 }).ingress!.burst).toBe(0xfffffffe);
  expect(() => of({ ingressRate: 8, ingressBurst: 0xffffffff * 8 })).toThrow("burst cannot be more than 4GB");
  expect(() => of({ egressRate: 8, egressBurst: 7 })).toThrow("rate and burst must be at least 8 bits");
  expect(() => of({ egressRate: 7, egressBurst: 8 })).toThrow("rate and burst must be at least 8 bits");
});

test("the capability counts where the configuration says nothing of limits at all", () => {
  const runtimeConfig = { bandwidth: { ...egress, shapedSubnets: ["10.0.0.0/8"] } };
  expect(of({ runtimeConfig })).toEqual({
    egress: { rate: 1, burst: 1 },
    subnets: { cidrs: ["10.0.0.0/8"], limited: true },
  });
  for (const written of [ingress, { ingressRate: 0 }, { egressBurst: 0 }, { shapedSubnets: [] }]) {
    expect(of({ ...written, runtimeConfig }).egress).toBeUndefined();
  }
  expect(of({})).toEqual({});
});

test("any of the keys is a limit", () => {
  expect(hasLimits({})).toBe(false);
  for (const key of ["ingressRate", "ingressBurst", "egressRate", "egressBurst"]) {
    expect(hasLimits({ [key]: 0 })).toBe(true);
  }
  for (const key of ["unshapedSubnets", "shapedSubnets"]) expect(hasLimits({ [key]: [] })).toBe(true);
});

test("subnets are limited, or exempt", () => {
  expect(of({ ...ingress, shapedSubnets: ["10.0.0.0/8"] }).subnets).toEqual({ cidrs: ["10.0.0.0/8"], limited: true });
  expect(of({ ...ingress, unshapedSubnets: ["fd00::/8", "10.0.0.0/8"], shapedSubnets: [] }).subnets).toEqual({
    cidrs: ["fd00::/8", "10.0.0.0/8"],
    limited: false,
  });
  expect(of({ ...ingress, unshapedSubnets: [] }).subnets).toBeUndefined();
  expect(() => of({ shapedSubnets: ["10.0.0.0/8", "x"] })).toThrow(
    'bad subnet "x" provided, details invalid CIDR address: x',
  );
  expect(() => of({ shapedSubnets: ["10.0.0.0/8"], unshapedSubnets: ["11.0.0.0/8"] })).toThrow("cannot be both");
});
