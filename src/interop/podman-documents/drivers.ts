/** The drivers that netavark has itself. Other drivers are programs. */
const VLAN_DRIVERS = ["macvlan", "ipvlan"] as const;

export type VlanDriver = (typeof VLAN_DRIVERS)[number];

export function isVlanDriver(driver: string): driver is VlanDriver {
  return VLAN_DRIVERS.some((known) => known === driver);
}

export function isNetavarksDriver(driver: string): boolean {
  return driver === "bridge" || isVlanDriver(driver);
}
